"""Train boosted trees that classify wines as one of three kinds, and write them as LightGBM's text.

python train.py
python train.py --out elsewhere
"""

import argparse
import json
from pathlib import Path

import lightgbm
import numpy as np
import numpy.typing as npt
from sklearn.datasets import load_wine

HERE = Path(__file__).parent
ROUNDS = 20
OPTIONS = {"objective": "multiclass", "num_class": 3, "num_leaves": 6, "num_threads": 1, "verbose": -1, "seed": 0}

Floats = npt.NDArray[np.float32]
Kinds = npt.NDArray[np.int64]


def read(seed: int) -> tuple[tuple[Floats, Kinds], tuple[Floats, Kinds]]:
    """Return two thirds of the wines to train on, and a third to test on."""
    wines, kinds = load_wine(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(kinds))
    cut = len(kinds) * 2 // 3
    train, test = ((wines[part].astype(np.float32), kinds[part]) for part in (order[:cut], order[cut:]))
    return train, test


def request(rows: Floats) -> dict[str, object]:
    """Return the body of a request with these rows."""
    tensor = {
        "name": "input__0",
        "datatype": "FP32",
        "shape": list(rows.shape),
        "data": rows.astype(float).round(2).tolist(),
    }
    return {"inputs": [tensor]}


def main() -> None:
    """Train, write the model and a request of one wine of each kind, and print the share of right answers."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=HERE)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    (wines, kinds), (held_out, expected) = read(args.seed)
    booster = lightgbm.train(OPTIONS, lightgbm.Dataset(wines, kinds), ROUNDS)
    right = float((booster.predict(held_out).argmax(axis=1) == expected).mean())
    print(f"held out: {len(expected)} wines, accuracy {right:.3f}")
    (args.out / "models").mkdir(parents=True, exist_ok=True)
    booster.save_model(args.out / "models" / "wine.txt")
    examples = held_out[[int(np.argmax(expected == kind)) for kind in range(3)]]
    (args.out / "request.json").write_text(json.dumps(request(examples)) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
