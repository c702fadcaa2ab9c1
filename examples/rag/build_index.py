"""Build the index of documents, and train the stage that orders the nearest ones.

The documents are those of the assistant's corpus: topics, built-ins, methods and modules of Python's own documentation,
each with a title and its first sentences. The stage `rerank` is a logistic regression on the four features of
`retrieve`, trained on the questions of the corpus: the document that a question is about against its neighbours.

    python build_index.py                    # a minute or two of one core
    python build_index.py --documents 20 --out /tmp/index
"""

import argparse
import importlib.util
import json
import random
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper

HERE = Path(__file__).parent
ASSISTANT = HERE.parent / "assistant"
TEST_SHARE = 5  # every fifth document's questions are for the test
QUESTIONS = 3  # of each document
OPSET, IR_VERSION = 17, 8

Floats = npt.NDArray[np.float32]


def load(path: Path, name: str) -> ModuleType:
    """Return a file as a module."""
    sys.path.insert(0, str(path.parent))
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def make_documents(corpus: ModuleType, most: int) -> tuple[list[dict[str, str]], list[tuple[str, ...]]]:
    """Return documents, and the questions that are about each."""
    documents, questions = [], []
    for pair in [*corpus.topic_pairs(), *corpus.builtin_pairs(), *corpus.module_pairs()][:most]:
        title = pair.questions[0].removeprefix("What is ").removesuffix("?")
        documents.append({"title": title, "text": pair.answer})
        questions.append(pair.questions)
    return documents, questions


def embed(texts: list[str], training: ModuleType, embedder: torch.nn.Module) -> Floats:
    """Return unit vectors FP32 [texts, 384]."""
    vectors: Floats = training.embed(texts, embedder)
    return vectors


def fit(features: Floats, labels: Floats, steps: int) -> tuple[Floats, float]:
    """Return weights [4] and bias of a logistic regression (with a small L2 penalty)."""
    x, y = torch.from_numpy(features), torch.from_numpy(labels)
    scale = x.std(dim=0).clamp(min=1e-6)
    weight = torch.zeros(x.shape[1], requires_grad=True)
    bias = torch.zeros(1, requires_grad=True)
    optimizer = torch.optim.LBFGS([weight, bias], max_iter=steps, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        value = torch.nn.functional.binary_cross_entropy_with_logits(x / scale @ weight + bias, y)
        value = value + 1e-4 * weight.square().sum()
        value.backward()  # type: ignore[no-untyped-call]  # torch has no types for it
        return value

    optimizer.step(loss)  # type: ignore[no-untyped-call]  # torch has no types for it
    return (weight / scale).detach().numpy(), float(bias.detach())


def to_onnx(weight: Floats, bias: float, candidates: int) -> onnx.ModelProto:
    """Return the graph: relevance = sigmoid(features · weight + bias)."""
    nodes = [
        helper.make_node("MatMul", ["features", "weight"], ["product"]),
        helper.make_node("Add", ["product", "bias"], ["logit"]),
        helper.make_node("Sigmoid", ["logit"], ["relevance"]),
    ]
    graph = helper.make_graph(
        nodes,
        "rerank",
        inputs=[helper.make_tensor_value_info("features", TensorProto.FLOAT, ["batch", candidates, len(weight)])],
        outputs=[helper.make_tensor_value_info("relevance", TensorProto.FLOAT, ["batch", candidates])],
        initializer=[
            numpy_helper.from_array(weight.astype(np.float32), "weight"),
            numpy_helper.from_array(np.array([bias], np.float32), "bias"),
        ],
    )
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR_VERSION, producer_name="argosy"
    )
    onnx.checker.check_model(model, full_check=True)
    return model


def examples_of(index: Any, questions: list[tuple[int, str]], vectors: Floats) -> tuple[Floats, Floats, Floats]:
    """Return features [questions, 20, 4], which candidates are the right document, and whether the first one is."""
    features, labels, nearest = [], [], []
    for (document, question), vector in zip(questions, vectors, strict=True):
        candidates, rows = index.search(question, vector)
        features.append(rows)
        labels.append(candidates == document)
        nearest.append(candidates[0] == document)
    return np.array(features), np.array(labels, np.float32), np.array(nearest, np.float32)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, default=HERE / "models")
    parser.add_argument("--documents", type=int, default=100_000, help="the most documents")
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    torch.set_num_threads(1)
    corpus, training = load(ASSISTANT / "corpus.py", "corpus"), load(ASSISTANT / "train_safety.py", "train_safety")
    documents, questions = make_documents(corpus, args.documents)
    embedder = training.load_embedder()
    for stage in ("retrieve", "augment", "rerank"):
        (args.out / stage).mkdir(parents=True, exist_ok=True)
    for stage in ("retrieve", "augment"):
        lines = ",\n".join(map(json.dumps, documents))
        (args.out / stage / "documents.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    texts = [f"{document['title']}: {document['text']}" for document in documents]
    np.save(args.out / "retrieve" / "embeddings.npy", embed(texts, training, embedder).astype(np.float16))
    dice = random.Random(args.seed)
    samples = [(at, question) for at, many in enumerate(questions) for question in dice.sample(many, QUESTIONS)]
    sys.modules.setdefault("triton_python_backend_utils", ModuleType("triton_python_backend_utils"))
    index = load(HERE / "models" / "retrieve" / "model.py", "retrieve_stage").Index(args.out / "retrieve")
    vectors = embed([question for _, question in samples], training, embedder)
    features, labels, nearest = examples_of(index, samples, vectors)
    test = np.array([at % TEST_SHARE == 0 for at, _ in samples])
    weight, bias = fit(features[~test].reshape(-1, features.shape[2]), labels[~test].reshape(-1), args.steps)
    onnx.save(to_onnx(weight, bias, features.shape[1]), args.out / "rerank" / "model.onnx")
    best = (features[test] @ weight).argmax(axis=1)
    print(f"{len(documents)} documents; of {test.sum()} questions about documents that rerank was not trained on,")
    print(f"  among the nearest {features.shape[1]}: {labels[test].max(axis=1).mean():.3f}")
    print(f"  first by the embedding alone: {nearest[test].mean():.3f}")
    print(f"  first after rerank: {labels[test][np.arange(len(best)), best].mean():.3f}")


if __name__ == "__main__":
    main()
