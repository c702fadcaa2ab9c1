"""Models as exported archives, and as source with weights."""

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tests.runtime.backends.pytorch.requests import config, request, results
from tests.runtime.backends.requests import named, parameter

from argosy_runtime.errors import ServingError

pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.:DeprecationWarning")


# Archives


class Structured(torch.nn.Module):
    def forward(self, x: torch.Tensor, options: dict[str, torch.Tensor], *, k: torch.Tensor) -> Any:
        return {"a": x + options["u"], "b": (x * k, x - k)}


def exported(folder: Path) -> None:
    x, u, k = (torch.ones(2, 3) for _ in range(3))
    rows = torch.export.Dim("rows", min=1, max=64)
    shapes = {"x": {0: rows}, "options": {"u": {0: rows}}, "k": {0: rows}}
    program = torch.export.export(Structured(), (x, {"u": u}), {"k": k}, dynamic_shapes=shapes)
    torch.export.save(program, folder / "model.pt2")


@pytest.mark.parametrize(
    ("inputs", "outputs"),
    [
        (["INPUT__0", "INPUT__1", "INPUT__2"], ["OUTPUT__0", "OUTPUT__1", "OUTPUT__2"]),
        (["ARGS[0]", "ARGS[1][u]", "KWARGS[k]"], ["RESULT[a]", "RESULT[b][0]", "RESULT[b][1]"]),
        (["x", "options_u", "k"], ["A", "B", "C"]),
    ],
    ids=["by index", "by path", "by argument"],
)
def test_an_exported_program(loaded: Any, responder: Any, inputs: list[str], outputs: list[str]) -> None:
    pbtxt = config(list(reversed(inputs)), outputs, 'platform: "torch_aoti" default_model_filename: "model.pt2"')
    requests = [named(dict(zip(inputs, ([[x] * 3], [[2] * 3], [[3] * 3]), strict=True))) for x in (5, 7)]
    loaded(pbtxt, exported).execute(requests, responder)
    assert list(results(responder.only(1)).values()) == [[[9] * 3], [[21] * 3], [[4] * 3]]


def test_an_archive_is_detected_without_being_named(loaded: Any, responder: Any) -> None:
    loaded(config(["x", "options_u", "k"], ["RESULT[a]"]), exported)


def test_too_few_inputs_for_an_archive(loaded: Any) -> None:
    with pytest.raises(ServingError, match="configuration expects 2 inputs, model provides 3"):
        loaded(config(["INPUT__0", "INPUT__1"], ["A"]), exported)


# A module's own source


SOURCE = """
import torch
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(2, 1, bias=False)
    def forward(self, x):
        return self.layer(x)
"""
RUNTIME = 'runtime: "model.py" default_model_filename: "model.pt" '


def from_source(source: str = SOURCE, weights: list[float] | None = None) -> Callable[[Path], None]:
    def save(folder: Path) -> None:
        (folder / "model.py").write_text(textwrap.dedent(source))
        if weights is not None:
            torch.save({"layer.weight": torch.tensor([weights])}, folder / "model.pt")

    return save


def test_source_with_weights(loaded: Any, responder: Any) -> None:
    instance = loaded(config(["IN"], ["OUT"], RUNTIME), from_source(weights=[10, 1]))
    instance.execute([request(IN=[[2, 3]]), request(IN=[[4, 5]])], responder)
    assert [results(responder.only(index)) for index in (0, 1)] == [{"OUT": [[23]]}, {"OUT": [[45]]}]


def test_source_without_weights(loaded: Any, responder: Any) -> None:
    loaded(config(["IN"], ["OUT"], RUNTIME), from_source()).execute([request(IN=[[2, 3]])], responder)
    assert responder.only().error is None


def test_source_is_compiled_on_request(loaded: Any, responder: Any) -> None:
    compiled = parameter("TORCH_COMPILE_OPTIONAL_PARAMETERS", '{\\"backend\\": \\"eager\\"}')
    instance = loaded(config(["IN"], ["OUT"], RUNTIME + compiled), from_source(weights=[10, 1]))
    instance.execute([request(IN=[[2, 3]])], responder)
    assert results(responder.only()) == {"OUT": [[23]]}


@pytest.mark.parametrize(
    ("compile_options", "expected"),
    [("[", "is not JSON"), ("[]", "must be a JSON object"), ('{\\"model\\": 1}', "'model' is not an optional")],
)
def test_wrong_compile_options_are_named(loaded: Any, compile_options: str, expected: str) -> None:
    extra = RUNTIME + parameter("TORCH_COMPILE_OPTIONAL_PARAMETERS", compile_options)
    with pytest.raises(ServingError, match=expected):
        loaded(config(["IN"], ["OUT"], extra), from_source())


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (SOURCE + "\nclass Other(Net): pass\n", "exactly one subclass of torch.nn.Module, found Net, Other"),
        ("x = 1", "exactly one subclass of torch.nn.Module, found none"),
        ("raise OSError('no')", r"failed to load '.*model\.py' for model 'm': no"),
    ],
)
def test_source_that_cannot_serve(loaded: Any, source: str, expected: str) -> None:
    with pytest.raises(ServingError, match=expected):
        loaded(config(["IN"], ["OUT"], RUNTIME), from_source(source))


# Loading
