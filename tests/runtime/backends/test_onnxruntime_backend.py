"""The ONNX Runtime backend: real files, real sessions."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from argosy_runtime.backends import onnxruntime as backend
from argosy_runtime.backends.onnxruntime import options
from argosy_runtime.errors import ErrorKind, ServingError
from argosy_runtime.messages import InferRequest, Tensor

IO = 'input { name: "%s" data_type: %s dims: %s } '
OUT = 'output { name: "%s" data_type: %s dims: %s } '
ADD_SUB = (
    'name: "m" backend: "onnxruntime" max_batch_size: 8 '
    + IO % ("A", "TYPE_FP32", "[ -1 ]")
    + IO % ("B", "TYPE_FP32", "[ -1 ]")
    + OUT % ("SUM", "TYPE_FP32", "[ -1 ]")
    + OUT % ("DIFF", "TYPE_FP32", "[ -1 ]")
)
Shape = list[int | str | None]


def graph(
    path: Path,
    nodes: list[tuple[str, list[str], list[str]]],
    inputs: dict[str, tuple[int, Shape]],
    outputs: dict[str, tuple[int, Shape]],
    initializers: dict[str, Any] | None = None,
) -> None:
    """Save a model."""
    sides = [
        [helper.make_tensor_value_info(name, kind, shape) for name, (kind, shape) in side.items()]
        for side in (inputs, outputs)
    ]
    constants = [onnx.numpy_helper.from_array(value, name) for name, value in (initializers or {}).items()]
    made = helper.make_graph([helper.make_node(*node) for node in nodes], "g", *sides, constants)
    model = helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, str(path))


def add_sub(path: Path, shape: Shape | None = None) -> None:
    tensor = (TensorProto.FLOAT, shape or ["batch", None])
    nodes = [("Add", ["A", "B"], ["SUM"]), ("Sub", ["A", "B"], ["DIFF"])]
    graph(path, nodes, {"A": tensor, "B": tensor}, {"SUM": tensor, "DIFF": tensor})


def identity(path: Path, kind: int, shape: Shape) -> None:
    graph(path, [("Identity", ["A"], ["OUT"])], {"A": (kind, shape)}, {"OUT": (kind, shape)})


def request(**arrays: Any) -> InferRequest:
    made = {name: np.array(value, np.float32) for name, value in arrays.items()}
    return InferRequest("m", {name: Tensor(name, "FP32", array) for name, array in made.items()})


@pytest.fixture
def loaded(model_folder: Callable[[str], Any], host: Any) -> Any:
    def load(pbtxt: str, save: Callable[[Path], None]) -> Any:
        folder = model_folder(pbtxt)
        save(folder.version_dir / "model.onnx")
        return backend.load(folder.spec(), host)

    return load


def test_a_batch_is_one_run_and_everyone_gets_their_rows(
    loaded: Any, responder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    instance = loaded(ADD_SUB, add_sub)
    runs = []
    run = onnxruntime.InferenceSession.run
    monkeypatch.setattr(onnxruntime.InferenceSession, "run", lambda *args: runs.append(1) or run(*args))
    first = request(A=[[1, 2]], B=[[3, 4]])
    second = request(A=[[5, 6], [7, 8]], B=[[1, 1], [2, 2]])
    second.requested_outputs = ("DIFF",)
    times = instance.execute([first, second], responder)
    assert runs == [1]
    assert times.compute_infer_ns > 0
    outputs = {output.name: output.array.tolist() for output in responder.only(0).outputs}
    assert outputs == {"SUM": [[4, 6]], "DIFF": [[-2, -2]]}
    (diff,) = responder.only(1).outputs
    assert (diff.name, diff.datatype, diff.array.tolist()) == ("DIFF", "FP32", [[4, 5], [5, 6]])


def test_requests_of_other_shapes_run_apart(loaded: Any, responder: Any) -> None:
    loaded(ADD_SUB, add_sub).execute(
        [request(A=[[1]], B=[[1]]), request(A=[[1, 2]], B=[[1, 2]]), request(A=[[3]], B=[[4]])], responder
    )
    assert [responder.only(index).outputs[0].array.tolist() for index in range(3)] == [[[2]], [[2, 4]], [[7]]]


def test_a_run_that_fails_fails_only_its_own_requests(loaded: Any, responder: Any) -> None:
    loaded(ADD_SUB, add_sub).execute([request(A=[[1, 2]], B=[[1, 2, 3]]), request(A=[[1]], B=[[1]])], responder)
    error = responder.only(0).error
    assert error.kind is ErrorKind.INTERNAL
    assert error.message.startswith("onnx runtime error ")
    assert responder.only(1).outputs[0].array.tolist() == [[2]]


def test_more_rows_than_allowed(loaded: Any, responder: Any) -> None:
    rows = [[1]] * 5
    loaded(ADD_SUB, add_sub).execute([request(A=rows, B=rows), request(A=rows, B=rows)], responder)
    assert responder.only(0).error.message == "batch size 10 for 'm', max allowed is 8"


def test_a_model_without_a_batch(loaded: Any, responder: Any) -> None:
    pbtxt = ADD_SUB.replace("max_batch_size: 8", "max_batch_size: 0").replace("[ -1 ]", "[ 3 ]")
    loaded(pbtxt, lambda path: add_sub(path, [3])).execute(
        [request(A=[1, 2, 3], B=[1, 1, 1]), request(A=[0, 0, 0], B=[1, 1, 1])], responder
    )
    assert responder.only(0).outputs[0].array.tolist() == [2, 3, 4]
    assert responder.only(1).outputs[1].array.tolist() == [-1, -1, -1]


def test_strings(loaded: Any, responder: Any) -> None:
    pbtxt = 'name: "m" max_batch_size: 2 ' + IO % ("A", "TYPE_STRING", "[ -1 ]")
    instance = loaded(
        pbtxt + OUT % ("OUT", "TYPE_STRING", "[ -1 ]"),
        lambda path: identity(path, TensorProto.STRING, ["n", None]),
    )
    given = np.array([["é".encode(), b"a\x00b"]], np.object_)
    broken = np.array([[b"\xff", b""]], np.object_)
    requests = [InferRequest("m", {"A": Tensor("A", "BYTES", array)}) for array in (given, broken)]
    instance.execute(requests[:1], responder)
    (output,) = responder.only(0).outputs
    assert (output.datatype, output.array.tolist()) == ("BYTES", given.tolist())
    responder.sent.clear()
    instance.execute(requests[1:], responder)
    assert "input 'A': ONNX strings must be UTF-8" in responder.only(0).error.message


def test_bfloat16(loaded: Any, responder: Any) -> None:
    pbtxt = 'name: "m" max_batch_size: 2 ' + IO % ("A", "TYPE_BF16", "[ 3 ]")
    instance = loaded(
        pbtxt + OUT % ("OUT", "TYPE_BF16", "[ 3 ]"),
        lambda path: identity(path, TensorProto.BFLOAT16, ["n", 3]),
    )
    given = np.array([[1, -2, 0.5]]).astype(ml_dtypes.bfloat16)
    instance.execute([InferRequest("m", {"A": Tensor("A", "BF16", given)})], responder)
    (output,) = responder.only().outputs
    assert (output.datatype, output.array.dtype) == ("BF16", ml_dtypes.bfloat16)
    assert output.array.tolist() == given.tolist()


def test_a_reshape_was_applied_before_and_is_undone_after(loaded: Any, responder: Any) -> None:
    reshaped = 'input { name: "A" data_type: TYPE_FP32 dims: [ 1 ] reshape { shape: [ ] } } '
    reshaped += 'output { name: "OUT" data_type: TYPE_FP32 dims: [ 1 ] reshape { shape: [ ] } } '
    instance = loaded('name: "m" max_batch_size: 4 ' + reshaped, lambda path: identity(path, TensorProto.FLOAT, ["n"]))
    instance.execute([request(A=[1, 2]), request(A=[3])], responder)
    assert responder.only(0).outputs[0].array.tolist() == [1, 2]
    assert responder.only(1).outputs[0].array.tolist() == [3]


def test_a_true_scalar(loaded: Any, responder: Any) -> None:
    pbtxt = 'name: "m" ' + IO % ("A", "TYPE_FP32", "[ 1 ]") + OUT % ("OUT", "TYPE_FP32", "[ 1 ]")
    loaded(pbtxt, lambda path: identity(path, TensorProto.FLOAT, [])).execute([request(A=[5])], responder)
    assert responder.only().outputs[0].array.tolist() == [5]


def test_an_optional_input_keeps_its_initializer(loaded: Any, responder: Any) -> None:
    pbtxt = 'name: "m" ' + IO % ("A", "TYPE_FP32", "[ 2 ]") + OUT % ("SUM", "TYPE_FP32", "[ 2 ]")
    pbtxt += 'input { name: "B" data_type: TYPE_FP32 dims: [ 2 ] optional: true }'
    tensor = (TensorProto.FLOAT, [2])
    instance = loaded(
        pbtxt,
        lambda path: graph(
            path,
            [("Add", ["A", "B"], ["SUM"])],
            {"A": tensor, "B": tensor},
            {"SUM": tensor},
            {"B": np.array([10, 20], np.float32)},
        ),
    )
    instance.execute([request(A=[1, 2]), request(A=[1, 2], B=[1, 1])], responder)
    assert responder.only(0).outputs[0].array.tolist() == [11, 22]
    assert responder.only(1).outputs[0].array.tolist() == [2, 3]


def test_implicit_state_is_always_computed(loaded: Any, responder: Any) -> None:
    state = 'sequence_batching { state { input_name: "B" output_name: "DIFF" data_type: TYPE_FP32 dims: [ -1 ] } }'
    pbtxt = 'name: "m" max_batch_size: 4 ' + IO % ("A", "TYPE_FP32", "[ -1 ]")
    pbtxt += OUT % ("SUM", "TYPE_FP32", "[ -1 ]") + state
    given = request(A=[[5]], B=[[2]])
    given.requested_outputs = ("SUM",)
    loaded(pbtxt, add_sub).execute([given], responder)
    assert {output.name: output.array.tolist() for output in responder.only().outputs} == {
        "SUM": [[7]],
        "DIFF": [[3]],
    }


# Loading


def test_a_missing_file_is_named(model_folder: Callable[[str], Any], host: Any) -> None:
    folder = model_folder(ADD_SUB)
    with pytest.raises(ServingError, match=r"unable to find '.*/m/1/model\.onnx' for model instance 'm_0'") as raised:
        backend.load(folder.spec(), host)
    assert raised.value.kind is ErrorKind.UNAVAILABLE


def test_a_corrupt_file_is_named(model_folder: Callable[[str], Any], host: Any) -> None:
    folder = model_folder(ADD_SUB)
    (folder.version_dir / "model.onnx").write_bytes(b"not a model")
    with pytest.raises(ServingError, match=r"onnx runtime error 7: Load model from .*model\.onnx failed"):
        backend.load(folder.spec(), host)


def test_a_folder_holds_the_model(model_folder: Callable[[str], Any], host: Any, responder: Any) -> None:
    folder = model_folder(ADD_SUB)
    add_sub(folder.version_dir / "model.onnx" / "model.onnx")
    instance = backend.load(folder.spec(), host)
    instance.execute([request(A=[[1]], B=[[1]])], responder)
    assert responder.only().error is None
    instance.close()


@pytest.mark.parametrize(
    ("find", "replace", "expected"),
    [
        (
            '"A" data_type: TYPE_FP32 dims: [ -1 ]',
            '"A" data_type: TYPE_FP32 dims: [ 2, 2 ]',
            (
                "model 'm', tensor 'A': the model expects 2 dimensions (shape [-1,-1]) but the model configuration "
                "specifies 3 dimensions (an initial batch dimension because max_batch_size > 0 followed by the explicit"
                " tensor shape, making complete shape [-1,2,2])"
            ),
        ),
        (
            '"A" data_type: TYPE_FP32',
            '"A" data_type: TYPE_INT32',
            (
                "unable to load model 'm', configuration expects datatype TYPE_INT32 for input 'A', "
                "model provides TYPE_FP32"
            ),
        ),
        (
            '"SUM" data_type: TYPE_FP32',
            '"SUM" data_type: TYPE_STRING',
            (
                "unable to load model 'm', configuration expects datatype TYPE_STRING for output 'SUM', "
                "model provides TYPE_FP32"
            ),
        ),
        ('"B"', '"C"', "unexpected inference input 'C', allowed inputs are: A, B"),
        ('"SUM"', '"S"', "unexpected inference output 'S', allowed outputs are: DIFF, SUM"),
        (
            "max_batch_size: 8",
            "max_batch_size: 0",
            (
                "model 'm', tensor 'A': the model expects 2 dimensions (shape [-1,-1]) but the model configuration "
                "specifies 1 dimensions (shape [-1])"
            ),
        ),
        (
            IO % ("B", "TYPE_FP32", "[ -1 ]"),
            "",
            "unable to load model 'm', configuration expects 1 inputs, model provides 2",
        ),
        (
            '"B" data_type: TYPE_FP32',
            '"B" allow_ragged_batch: true data_type: TYPE_FP32',
            (
                "unable to load model 'm', input 'B' asks for ragged batches, which this backend does not join; "
                "pad the input, or set max_batch_size to 0"
            ),
        ),
    ],
)
def test_a_contradiction_is_named(loaded: Any, find: str, replace: str, expected: str) -> None:
    with pytest.raises(ServingError) as raised:
        loaded(ADD_SUB.replace(find, replace), add_sub)
    assert raised.value.message == expected


def test_a_fixed_first_dimension_cannot_batch(loaded: Any) -> None:
    with pytest.raises(ServingError, match="the first dimension must be -1; but shape expected by the model is"):
        loaded(ADD_SUB, lambda path: add_sub(path, [1, 3]))


def test_a_gpu_without_its_provider_is_refused(model_folder: Callable[[str], Any], host: Any) -> None:
    folder = model_folder(ADD_SUB)
    add_sub(folder.version_dir / "model.onnx")
    with pytest.raises(ServingError, match="needs ONNX Runtime's CUDAExecutionProvider") as raised:
        backend.load(folder.spec(kind="KIND_GPU"), host)
    assert "onnxruntime-gpu" in raised.value.message


def test_a_model_that_is_given_gpus_to_span_is_refused(model_folder: Callable[[str], Any], host: Any) -> None:
    folder = model_folder(ADD_SUB + parameter("gpu_device_ids", "0,1"))
    add_sub(folder.version_dir / "model.onnx")
    with pytest.raises(ServingError, match=r"cannot span GPUs 0, 1; give it an instance group of KIND_GPU"):
        backend.load(folder.spec(kind="KIND_MODEL"), host)
    backend.load(folder.spec(kind="KIND_CPU"), host).close()


# Options


def parameter(key: str, value: str) -> str:
    return f' parameters {{ key: "{key}" value {{ string_value: "{value}" }} }}'


def test_options_come_from_the_configuration(model_folder: Callable[[str], Any]) -> None:
    given = {
        "intra_op_thread_count": "3",
        "inter_op_thread_count": "2",
        "execution_mode": "1",
        "enable_mem_arena": "false",
        "enable_mem_pattern": "0",
        "session.set_denormal_as_zero": "1",
        "memory.enable_memory_arena_shrinkage": "cpu:0",
    }
    pbtxt = ADD_SUB + "optimization { graph { level: -1 } }" + "".join(parameter(*item) for item in given.items())
    config = model_folder(pbtxt).config
    made = options.session_options(config)
    assert (made.intra_op_num_threads, made.inter_op_num_threads) == (3, 2)
    assert made.execution_mode.name == "ORT_PARALLEL"
    assert (made.enable_cpu_mem_arena, made.enable_mem_pattern) == (False, False)
    assert made.graph_optimization_level.name == "ORT_ENABLE_BASIC"
    assert made.get_session_config_entry("session.set_denormal_as_zero") == "1"
    run = options.run_options(config)
    assert run is not None
    assert run.get_run_config_entry("memory.enable_memory_arena_shrinkage") == "cpu:0"


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("intra_op_thread_count", "many", "parameter 'intra_op_thread_count' is 'many', expected a whole number"),
        ("execution_mode", "2", "execution_mode are 0 or 1 but got 2"),
        ("enable_mem_arena", "perhaps", "parameter 'enable_mem_arena' is 'perhaps', expected true or false"),
    ],
)
def test_a_wrong_option_is_named(loaded: Any, key: str, value: str, expected: str) -> None:
    with pytest.raises(ServingError, match=expected):
        loaded(ADD_SUB + parameter(key, value), add_sub)


def test_accelerators_become_providers(model_folder: Callable[[str], Any]) -> None:
    config = model_folder(
        ADD_SUB
        + """optimization { execution_accelerators {
            gpu_execution_accelerator { name: "tensorrt"
                parameters { key: "precision_mode" value: "FP16" }
                parameters { key: "max_workspace_size_bytes" value: "9" } }
            gpu_execution_accelerator { name: "cuda" parameters { key: "use_tf32" value: "0" } }
            cpu_execution_accelerator { name: "openvino" } } }"""
        + parameter("arena_extend_strategy", "1")
    ).config
    found = dict(options.providers(config, "KIND_GPU", 2, stream=77))
    assert list(found) == [options.TENSORRT, options.CUDA, options.OPENVINO, options.CPU]
    assert found[options.TENSORRT] == {
        "device_id": "2",
        "user_compute_stream": "77",
        "trt_fp16_enable": "1",
        "trt_max_workspace_size": "9",
    }
    assert found[options.CUDA] == {
        "use_tf32": "0",
        "device_id": "2",
        "user_compute_stream": "77",
        "arena_extend_strategy": "kSameAsRequested",
    }
    assert [name for name, _ in options.providers(config, "KIND_CPU", 0)] == [options.OPENVINO, options.CPU]


def test_an_unknown_accelerator_is_named(loaded: Any) -> None:
    accelerator = 'optimization { execution_accelerators { cpu_execution_accelerator { name: "fast" } } }'
    with pytest.raises(ServingError, match="unknown Execution Accelerator 'fast' is requested"):
        loaded(ADD_SUB + accelerator, add_sub)


# Completing the configuration


def completed(model_folder: Callable[[str], Any], pbtxt: str, save: Callable[[Path], None]) -> Any:
    folder = model_folder(pbtxt)
    save(folder.version_dir / "model.onnx")
    return backend.complete_config(folder.model_dir, folder.version_dir, folder.config)


def test_a_model_that_can_batch_is_completed(model_folder: Callable[[str], Any]) -> None:
    config = completed(model_folder, 'name: "m"', lambda path: add_sub(path, ["n", None, 3]))
    assert (config.max_batch_size, config.HasField("dynamic_batching")) == (4, True)
    assert [(given.name, given.data_type, list(given.dims)) for given in config.input] == [
        ("A", 11, [-1, 3]),
        ("B", 11, [-1, 3]),
    ]
    assert [output.name for output in config.output] == ["SUM", "DIFF"]


def test_a_model_that_cannot_batch_is_completed(model_folder: Callable[[str], Any]) -> None:
    config = completed(model_folder, 'name: "m"', lambda path: add_sub(path, [2, 3]))
    assert (config.max_batch_size, config.HasField("dynamic_batching")) == (0, False)
    assert list(config.input[0].dims) == [2, 3]


def test_a_bare_batch_becomes_a_reshape_and_still_loads(
    model_folder: Callable[[str], Any], host: Any, responder: Any
) -> None:
    folder = model_folder('name: "m"')
    identity(folder.version_dir / "model.onnx", TensorProto.INT64, ["n"])
    config = backend.complete_config(folder.model_dir, folder.version_dir, folder.config)
    assert list(config.input[0].dims) == [1]
    assert config.input[0].HasField("reshape")
    given = InferRequest("m", {"A": Tensor("A", "INT64", np.array([4]))})
    backend.load(folder.spec(config), host).execute([given], responder)
    assert responder.only().outputs[0].array.tolist() == [4]


def test_what_is_set_stays(model_folder: Callable[[str], Any]) -> None:
    config = completed(model_folder, 'name: "m" max_batch_size: 1 ' + OUT % ("SUM", "TYPE_FP32", "[ -1 ]"), add_sub)
    assert (config.max_batch_size, config.HasField("dynamic_batching")) == (1, False)
    assert [output.name for output in config.output] == ["SUM"]
    full = completed(model_folder, ADD_SUB.replace('"m"', '"full"'), lambda path: None)
    assert not full.HasField("dynamic_batching")


def test_a_batch_size_the_model_cannot_have(model_folder: Callable[[str], Any]) -> None:
    with pytest.raises(ServingError, match="autofill failed for model 'm': model does not support batching"):
        completed(model_folder, 'name: "m" max_batch_size: 2', lambda path: add_sub(path, [2]))
