"""Models of the PyTorch backend, saved and served for real."""

from collections.abc import Callable
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest
import torch
from tests.runtime.backends.pytorch.requests import config, request, results, torchscript
from tests.runtime.backends.requests import named, parameter

from argosy_runtime.backends import pytorch as backend
from argosy_runtime.backends.pytorch import naming, structure
from argosy_runtime.errors import ErrorKind, ServingError
from argosy_runtime.messages import InferRequest, Tensor

pytestmark = pytest.mark.filterwarnings("ignore:.torch.jit.:DeprecationWarning")


class AddSub(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x + y, x - y


class Named(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"low": x - y, "high": x + y}


class Bounds(NamedTuple):
    low: torch.Tensor
    high: torch.Tensor


class Fields(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> Bounds:
        return Bounds(x - y, x + y)


class FromDictionary(torch.nn.Module):
    def forward(self, inputs: dict[str, torch.Tensor]) -> torch.Tensor:
        return inputs["x"] * 10 + inputs["y"]


class Ragged(torch.nn.Module):
    def forward(self, x: torch.Tensor, ends: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return x * 2, ends


class Texts(torch.nn.Module):
    def forward(self, x: list[str]) -> list[str]:
        return [item + "!" for item in x]


@pytest.mark.parametrize(
    ("inputs", "outputs"),
    [
        (["INPUT__0", "INPUT__1"], ["OUTPUT__0", "OUTPUT__1"]),
        (["x", "y"], ["SUM", "DIFF"]),
        (["FIRST", "SECOND"], ["A__0", "B__1"]),
    ],
    ids=["by index", "by argument", "by order"],
)
def test_torchscript_inputs_and_outputs(loaded: Any, responder: Any, inputs: list[str], outputs: list[str]) -> None:
    instance = loaded(config(inputs, outputs), torchscript(AddSub()))
    first = named({inputs[0]: [[5, 6]], inputs[1]: [[1, 2]]})
    second = named({inputs[1]: [[1, 1], [2, 2]], inputs[0]: [[1, 2], [3, 4]]})
    assert instance.execute([first, second], responder) is not None
    assert results(responder.only(0)) == {outputs[0]: [[6, 8]], outputs[1]: [[4, 4]]}
    assert results(responder.only(1)) == {outputs[0]: [[2, 3], [5, 6]], outputs[1]: [[0, 1], [1, 2]]}


def test_ragged_requests_share_a_run(loaded: Any, responder: Any) -> None:
    ragged = (
        'batch_input { kind: BATCH_ACCUMULATED_ELEMENT_COUNT target_name: "IN__1" data_type: TYPE_FP32 '
        'source_input: "IN__0" } '
        'batch_output { target_name: "OUT__0" kind: BATCH_SCATTER_WITH_INPUT_SHAPE source_input: "IN__0" }'
    )
    pbtxt = config(["IN__0"], ["OUT__0", "OUT__1"], ragged)
    pbtxt = pbtxt.replace("dims: [ -1 ]", "dims: [ -1 ] allow_ragged_batch: true", 1)
    instance = loaded(pbtxt, torchscript(Ragged()))
    instance.execute([named({"IN__0": [[1, 2, 3]]}), named({"IN__0": [[4]]})], responder)
    assert results(responder.only(0)) == {"OUT__0": [[2, 4, 6]], "OUT__1": [3]}
    assert results(responder.only(1)) == {"OUT__0": [[8]], "OUT__1": [4]}


def test_an_index_decides_whatever_the_order(loaded: Any, responder: Any) -> None:
    instance = loaded(config(["IN__1", "IN__0"], ["OUT__1"]), torchscript(AddSub()))
    instance.execute([named({"IN__1": [[1]], "IN__0": [[5]]})], responder)
    assert results(responder.only()) == {"OUT__1": [[4]]}


def test_dictionaries_go_by_name(loaded: Any, responder: Any, model_folder: Any) -> None:
    loaded(config(["x", "y"], ["high", "low"]), torchscript(Named())).execute([request(x=[[5]], y=[[1]])], responder)
    assert results(responder.only()) == {"high": [[6]], "low": [[4]]}
    responder.sent.clear()
    pbtxt = config(["y", "x"], ["OUT"]).replace('"m"', '"n"')
    loaded(pbtxt, torchscript(FromDictionary())).execute([request(x=[[5]], y=[[1]])], responder)
    assert results(responder.only()) == {"OUT": [[51]]}


@pytest.mark.parametrize(
    "outputs", [["high", "low"], ["o__1", "o__0"], ["RESULT[1]", "RESULT[0]"], ["RESULT[high]", "RESULT[low]"]]
)
def test_fields_of_a_named_tuple_go_by_name_or_position(loaded: Any, responder: Any, outputs: list[str]) -> None:
    loaded(config(["x", "y"], outputs), torchscript(Fields())).execute([request(x=[[5]], y=[[1]])], responder)
    assert results(responder.only()) == dict(zip(outputs, ([[6]], [[4]]), strict=True))


def test_names_follow_every_kind_of_key() -> None:
    result: Any = {"a": [5, Bounds([], {"b": 7, "c": 8})], "d": Bounds(1, 2)}  # type: ignore[arg-type]  # names alone
    leaves, values = structure.result_leaves(result)
    assert values == [5, 7, 8, 1, 2]
    assert [leaf.names for leaf in leaves] == [
        {"RESULT[a][0]"},
        {"RESULT[a][1][high][b]", "RESULT[a][1][1][b]"},
        {"RESULT[a][1][high][c]", "RESULT[a][1][1][c]"},
        {"RESULT[d][low]", "RESULT[d][0]"},
        {"RESULT[d][high]", "RESULT[d][1]"},
    ]


def test_only_requested_outputs_are_sent(loaded: Any, responder: Any) -> None:
    diff_only = request(x=[[5]], y=[[1]])
    diff_only.requested_outputs = ("DIFF",)
    loaded(config(["x", "y"], ["SUM", "DIFF"]), torchscript(AddSub())).execute([diff_only], responder)
    assert results(responder.only()) == {"DIFF": [[4]]}


def test_strings(loaded: Any, responder: Any) -> None:
    pbtxt = config(["x"], ["OUT"], kind="TYPE_STRING").replace("max_batch_size: 8", "")
    texts = np.array(["é".encode(), b"a"], np.object_)
    loaded(pbtxt, torchscript(Texts())).execute([InferRequest("m", {"x": Tensor("x", "BYTES", texts)})], responder)
    assert results(responder.only()) == {"OUT": ["é!".encode(), b"a!"]}


def test_bfloat16_and_read_only_inputs(loaded: Any, responder: Any) -> None:
    values = np.array([[1.5, -2]]).astype(ml_dtypes.bfloat16)
    values.flags.writeable = False
    tensors = {name: Tensor(name, "BF16", values) for name in ("x", "y")}
    loaded(config(["x", "y"], ["SUM", "DIFF"], kind="TYPE_BF16"), torchscript(AddSub())).execute(
        [InferRequest("m", tensors)], responder
    )
    assert responder.only().outputs[0].datatype == "BF16"
    assert results(responder.only())["SUM"] == [[3, -4]]


def test_the_wrong_datatype_is_named(loaded: Any, responder: Any) -> None:
    pbtxt = config(["x", "y"], ["SUM"]).replace('"SUM" data_type: TYPE_FP32', '"SUM" data_type: TYPE_INT64')
    loaded(pbtxt, torchscript(AddSub())).execute([request(x=[[5]], y=[[1]])], responder)
    assert responder.only().error.message == (
        "model 'm': unexpected datatype TYPE_FP32 for inference output 'SUM', expecting TYPE_INT64"
    )


def test_an_output_the_model_does_not_give(loaded: Any, responder: Any) -> None:
    loaded(config(["x", "y"], ["OUT__2"]), torchscript(AddSub())).execute([request(x=[[5]], y=[[1]])], responder)
    assert "output 'OUT__2' is number 2, but the model has 2 outputs" in responder.only().error.message


def test_a_batch_the_model_loses_is_named(loaded: Any, responder: Any) -> None:
    class Total(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.sum(dim=0, keepdim=True)

    loaded(config(["x"], ["OUT"]), torchscript(Total())).execute([request(x=[[1]]), request(x=[[2]])], responder)
    assert responder.only(0).error.message == (
        "model 'm', output 'OUT': the model returned shape [1, 1] for a batch of 2; "
        "the first dimension must be the batch"
    )


@pytest.mark.parametrize("inference_mode", ["true", "false"])
def test_no_gradients_either_way(loaded: Any, responder: Any, inference_mode: str) -> None:
    extra = parameter("INFERENCE_MODE", inference_mode) + parameter("DISABLE_OPTIMIZED_EXECUTION", "true")
    instance = loaded(
        config(["x"], ["OUT"], extra + parameter("DISABLE_CUDNN", "true")), torchscript(torch.nn.Linear(2, 1))
    )
    instance.execute([request(x=[[5, 6]])], responder)
    assert responder.only().error is None


def test_shared_weights_are_one_model(model_folder: Callable[[str], Any], host: Any) -> None:
    for shared in ("true", "false"):
        folder = model_folder(
            config(["x", "y"], ["SUM"], parameter("ENABLE_WEIGHT_SHARING", shared)).replace('"m"', f'"{shared}"')
        )
        torchscript(AddSub())(folder.version_dir)
        first, second = (backend.load(folder.spec(), host) for _ in range(2))
        assert (first._model is second._model) == (shared == "true")


def test_a_missing_file_is_named(model_folder: Callable[[str], Any], host: Any) -> None:
    folder = model_folder(config(["x"], ["OUT"]))
    expected = r"unable to find '.*/m/1/model\.pt' or '.*/m/1/model\.pt2' for model instance 'm_0'"
    with pytest.raises(ServingError, match=expected) as raised:
        backend.load(folder.spec(), host)
    assert raised.value.kind is ErrorKind.UNAVAILABLE


@pytest.mark.parametrize("name", ["model.pt", "model.pt2"])
def test_a_corrupt_file_is_named(model_folder: Callable[[str], Any], host: Any, name: str) -> None:
    folder = model_folder(config(["x"], ["OUT"], f'default_model_filename: "{name}"'))
    (folder.version_dir / name).write_bytes(b"not a model")
    with pytest.raises(ServingError, match=rf"failed to load '.*/{name}' for model 'm': not a"):
        backend.load(folder.spec(), host)


def test_saved_weights_are_no_model(model_folder: Callable[[str], Any], host: Any) -> None:
    folder = model_folder(config(["x"], ["OUT"]))
    torch.save({"w": torch.ones(1)}, folder.version_dir / "model.pt")
    with pytest.raises(ServingError, match=r"not a TorchScript file .* or with torch\.export\.save"):
        backend.load(folder.spec(), host)


def test_inputs_must_be_configured(model_folder: Callable[[str], Any], host: Any) -> None:
    folder = model_folder(config([], ["OUT"]))
    with pytest.raises(ServingError, match="the model configuration must specify both"):
        backend.load(folder.spec(), host)


def test_a_gap_in_the_numbers_is_named(loaded: Any) -> None:
    with pytest.raises(ServingError, match="must be numbered from 0 without gaps"):
        loaded(config(["IN__0", "IN__2"], ["OUT"]), torchscript(AddSub()))


@pytest.mark.skipif(torch.cuda.is_available(), reason="this machine has what the test expects to lack")
def test_a_gpu_that_is_not_there(model_folder: Callable[[str], Any], host: Any) -> None:
    folder = model_folder(config(["x", "y"], ["SUM"]))
    torchscript(AddSub())(folder.version_dir)
    with pytest.raises(ServingError, match=r"'m_0' \(KIND_GPU\) needs CUDA"):
        backend.load(folder.spec(kind="KIND_GPU"), host)


def test_two_names_for_one_position_are_refused() -> None:
    leaves = [naming.Leaf(frozenset({"a"})), naming.Leaf(frozenset({"b"}))]
    with pytest.raises(ServingError, match="inputs 'X__1' and 'Y__1' are both number 1"):
        naming.positions("m", "input", ["X__1", "Y__1"], leaves)


@pytest.mark.parametrize(("limit", "expected"), [(2, [2]), (None, [])])
def test_without_a_number_the_limit_of_the_process_sizes_the_threads(
    model_folder: Callable[[str], Any],
    host: Any,
    monkeypatch: pytest.MonkeyPatch,
    limit: int | None,
    expected: list[int],
) -> None:
    sizes: list[int] = []
    monkeypatch.setattr(backend, "_chosen", {})
    monkeypatch.setattr(backend, "cpu_limit", lambda: limit)
    monkeypatch.setattr(torch, "set_num_threads", sizes.append)
    monkeypatch.setattr(torch, "set_num_interop_threads", lambda count: None)
    folder = model_folder(config(["x", "y"], ["SUM"]))
    torchscript(AddSub())(folder.version_dir)
    backend.load(folder.spec(), host)
    assert sizes == expected


def test_the_first_model_sizes_the_threads(
    model_folder: Callable[[str], Any], host: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []
    monkeypatch.setattr(backend, "_chosen", {})
    monkeypatch.setattr(torch, "set_num_threads", sizes.append)
    for name, count in (("a", "1"), ("b", "1"), ("c", "2")):
        pbtxt = config(["x", "y"], ["SUM"], parameter("INTRA_OP_THREAD_COUNT", count))
        folder = model_folder(pbtxt.replace('"m"', f'"{name}"'))
        torchscript(AddSub())(folder.version_dir)
        backend.load(folder.spec(), host)
    assert sizes == [1, 1]
    assert host.lines == [("warning", "INTRA_OP_THREAD_COUNT 2 is ignored: this process already runs with 1")]
