"""Real data for builds, and models of it: handwritten digits (UCI's, as scikit-learn has them), small networks."""

import functools
import importlib
import io
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

Floats = NDArray[np.float32]
PIXELS, CLASSES, HIDDEN = 64, 10, 64
EPOCHS = 60
TRAINED_ON = 1200
"""How many of the 1797 digits a network sees; the others are to show how good it is."""


@dataclass(frozen=True, slots=True)
class Digits:
    """Images as rows of pixels from 0 to 1, and what they are."""

    images: Floats
    labels: NDArray[np.int64]

    def npz(self, *, labels: bool = True) -> bytes:
        """Return the digits as the builder reads them."""
        file = io.BytesIO()
        np.savez(file, x=self.images, **({"labels": self.labels} if labels else {}))
        return file.getvalue()


@functools.cache
def digits() -> tuple[Digits, Digits]:
    """Return the digits to train on and those to test with."""
    data: Any = importlib.import_module("sklearn.datasets").load_digits()
    images, labels = (data.data / 16).astype(np.float32), data.target.astype(np.int64)
    return Digits(images[:TRAINED_ON], labels[:TRAINED_ON]), Digits(images[TRAINED_ON:], labels[TRAINED_ON:])


@functools.cache
def weights(seed: int = 1) -> tuple[Floats, ...]:
    """Return the weights of a network with one hidden layer, trained for a second: into it, its bias, out of it, its
    bias.
    """
    classifier: Any = importlib.import_module("sklearn.neural_network").MLPClassifier((HIDDEN,), random_state=seed)
    train, _ = digits()
    for _ in range(EPOCHS):
        classifier.partial_fit(train.images, train.labels, classes=range(CLASSES))
    (into, out), (before, after) = classifier.coefs_, classifier.intercepts_
    return tuple(array.astype(np.float32) for array in (into, before, out, after))


def onnx_model(seed: int = 1) -> bytes:
    """Return the network as an ONNX file: `x` [batch, 64] to `y` [batch, 10], logits."""
    named = dict(zip(("into", "before", "out", "after"), weights(seed), strict=True))
    nodes = [
        helper.make_node("MatMul", ["x", "into"], ["a"], "first"),
        helper.make_node("Add", ["a", "before"], ["b"], "first_bias"),
        helper.make_node("Relu", ["b"], ["c"], "relu"),
        helper.make_node("MatMul", ["c", "out"], ["d"], "second"),
        helper.make_node("Add", ["d", "after"], ["y"], "second_bias"),
    ]
    graph = helper.make_graph(
        nodes,
        "digits",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ("batch", PIXELS))],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ("batch", CLASSES))],
        [numpy_helper.from_array(array, name) for name, array in named.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.checker.check_model(model)
    text: bytes = model.SerializeToString()
    return text


@functools.cache
def exported_program() -> bytes:
    """Return the network as a program of torch.export, for up to 64 images: `x` [batch, 64] to logits [batch, 10]."""
    torch: Any = importlib.import_module("torch")
    into, before, out, after = weights()
    hidden, last = torch.nn.Linear(PIXELS, HIDDEN), torch.nn.Linear(HIDDEN, CLASSES)
    for layer, matrix, bias in ((hidden, into, before), (last, out, after)):
        layer.weight.data, layer.bias.data = torch.from_numpy(matrix.T.copy()), torch.from_numpy(bias)
    network = torch.nn.Sequential(hidden, torch.nn.ReLU(), last).eval()
    batch = torch.export.Dim("batch", min=1, max=64)
    file = io.BytesIO()
    with torch.no_grad():
        torch.export.save(torch.export.export(network, (torch.zeros(2, PIXELS),), dynamic_shapes=({0: batch},)), file)
    return file.getvalue()
