"""Train a small network on scans of handwritten digits, and write it as ONNX with the data its engine needs.

`data/digits.npz` are the scans. Of three parts one trains, a few of it calibrate int8, and what was held out is what
fp32 and int8 are compared on.

    python train.py
    python train.py --epochs 2 --out elsewhere
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper

HERE = Path(__file__).parent
PIXELS, HIDDEN, DIGITS = 64, 256, 10
BRIGHTEST = 16
CALIBRATION = 200
OPSET = 17
IR_VERSION = 8  # what opset 17 came with, so that older servers load it too

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Scans:
    """Images FP32 [scans, 64] from 0 to 1, and the digits they are of, INT64 [scans]."""

    images: Floats
    labels: npt.NDArray[np.int64]


def read(path: Path, seed: int) -> tuple[Scans, Scans]:
    """Return two thirds to train on, and a third to test on."""
    with np.load(path) as archive:
        images = archive["images"].reshape(-1, PIXELS).astype(np.float32) / BRIGHTEST
        labels = archive["labels"].astype(np.int64)
    order = np.random.default_rng(seed).permutation(len(labels))
    cut = len(labels) * 2 // 3
    train, test = (Scans(images[part], labels[part]) for part in (order[:cut], order[cut:]))
    return train, test


def network() -> torch.nn.Sequential:
    """Return a network of two hidden layers."""
    return torch.nn.Sequential(
        torch.nn.Linear(PIXELS, HIDDEN),
        torch.nn.ReLU(),
        torch.nn.Linear(HIDDEN, HIDDEN),
        torch.nn.ReLU(),
        torch.nn.Linear(HIDDEN, DIGITS),
    )


def fit(model: torch.nn.Sequential, scans: Scans, epochs: int) -> None:
    """Train by Adam on the cross entropy, in batches of 64."""
    images, labels = torch.from_numpy(scans.images), torch.from_numpy(scans.labels)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, weight_decay=1e-5)
    for _ in range(epochs):
        for batch in torch.randperm(len(labels)).split(64):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(model(images[batch]), labels[batch])
            loss.backward()  # type: ignore[no-untyped-call]  # torch has no types for it
            optimizer.step()


def accuracy(model: torch.nn.Sequential, scans: Scans) -> float:
    """Return the share of scans that are read correctly."""
    with torch.inference_mode():
        chosen = model(torch.from_numpy(scans.images)).argmax(1).numpy()
    return float((chosen == scans.labels).mean())


def to_onnx(model: torch.nn.Sequential) -> onnx.ModelProto:
    """Return the graph: image FP32 [batch, 64] to scores FP32 [batch, 10]."""
    nodes, weights, name = [], [], "image"
    layers = [layer for layer in model if isinstance(layer, torch.nn.Linear)]
    for at, layer in enumerate(layers):
        last = layer is layers[-1]
        for part, value in (("weight", layer.weight.T), ("bias", layer.bias)):
            weights.append(numpy_helper.from_array(np.ascontiguousarray(value.detach().numpy()), f"{part}{at}"))
        nodes.append(helper.make_node("MatMul", [name, f"weight{at}"], [f"product{at}"]))
        nodes.append(helper.make_node("Add", [f"product{at}", f"bias{at}"], ["scores" if last else f"sum{at}"]))
        if not last:
            name = f"layer{at}"
            nodes.append(helper.make_node("Relu", [f"sum{at}"], [name]))
    graph = helper.make_graph(
        nodes,
        "digits",
        inputs=[helper.make_tensor_value_info("image", TensorProto.FLOAT, ["batch", PIXELS])],
        outputs=[helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["batch", DIGITS])],
        initializer=weights,
    )
    built = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION, producer_name="argosy"
    )
    onnx.checker.check_model(built, full_check=True)
    return built


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=HERE / "data" / "digits.npz")
    parser.add_argument("--out", type=Path, default=HERE, help="gets models/ and data/")
    parser.add_argument("--epochs", type=int, default=40)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.manual_seed(args.seed)
    torch.set_num_threads(1)
    train, test = read(args.data, args.seed)
    model = network()
    fit(model, train, args.epochs)
    print(f"held out: {len(test.labels)} scans, accuracy {accuracy(model, test):.3f}")
    for folder in ("models", "data"):
        (args.out / folder).mkdir(parents=True, exist_ok=True)
    onnx.save(to_onnx(model), args.out / "models" / "digits.onnx")
    np.savez_compressed(args.out / "data" / "calibration.npz", image=train.images[:CALIBRATION])
    np.savez_compressed(args.out / "data" / "held-out.npz", image=test.images, labels=test.labels)


if __name__ == "__main__":
    main()
