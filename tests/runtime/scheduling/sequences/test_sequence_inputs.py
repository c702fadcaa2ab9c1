"""Control tensors and implicit state: what a model sees of a sequence."""

import numpy as np
import pytest
from google.protobuf import text_format
from tests.runtime.scheduling.sequences.bench import Bench, config
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.errors import internal
from argosy_runtime.messages import InferRequest, InferResponse, RequestTemplate, Tensor
from argosy_runtime.scheduling.queued_request import QueuedRequest
from argosy_runtime.scheduling.scheduler import Slots
from argosy_runtime.scheduling.sequences.controls import ControlInputs
from argosy_runtime.scheduling.sequences.scheduler import SequenceScheduler
from argosy_runtime.scheduling.sequences.sequence import Sequence, Step

STATE = """
    state [ {
      input_name: "STATE" output_name: "STATE_OUT" data_type: TYPE_INT32 dims: [ -1 ]
      INITIAL
    } ]
"""


def _corrid(datatype: str, identifier: int | str, size: int = 4) -> Tensor:
    controls = f"""
        control_input [ {{ name: "ID" control [ {{ kind: CONTROL_SEQUENCE_CORRID data_type: {datatype} }} ] }} ]
    """
    inputs = ControlInputs(config(controls=controls, size=size))
    request = InferRequest("m", {}, sequence_id=identifier)
    return inputs.message(Step(QueuedRequest(request, 0), Sequence(identifier), False, False), []).inputs["ID"]


@pytest.mark.parametrize(
    ("datatype", "identifier", "dtype", "value"),
    [
        ("TYPE_UINT64", 2**64 - 1, "uint64", 2**64 - 1),
        ("TYPE_INT64", 2**64 - 1, "int64", -1),
        ("TYPE_UINT32", 2**32 + 7, "uint32", 7),
        ("TYPE_INT32", 5, "int32", 5),
        ("TYPE_STRING", "höhe", "object", "höhe".encode()),
    ],
)
def test_a_correlation_id_has_any_of_its_types(datatype: str, identifier: int | str, dtype: str, value: object):
    tensor = _corrid(datatype, identifier)
    assert tensor.shape == (1, 1)
    assert tensor.array.dtype == dtype
    assert tensor.array[0, 0] == value


def test_without_a_batch_controls_have_one_dimension():
    assert _corrid("TYPE_UINT64", 3, size=0).shape == (1,)


@pytest.mark.parametrize(
    ("values", "datatype", "expected"),
    [
        ("int32_false_true: [ 3, -4 ]", "INT32", [-4, 3]),
        ("fp32_false_true: [ 0.5, 2.5 ]", "FP32", [2.5, 0.5]),
        ("bool_false_true: [ false, true ]", "BOOL", [True, False]),
    ],
)
def test_a_flag_has_the_values_of_its_configuration(values: str, datatype: str, expected: list[object]):
    controls = f"""control_input [ {{ name: "S" control [ {{ kind: CONTROL_SEQUENCE_START {values} }} ] }} ]"""
    inputs = ControlInputs(config(controls=controls))
    values_seen = []
    for start in (True, False):
        request = InferRequest("m", {}, sequence_id=1, sequence_start=start)
        tensor = inputs.message(Step(QueuedRequest(request, 0), Sequence(1), start, False), []).inputs["S"]
        assert (tensor.datatype, tensor.shape) == (datatype, (1, 1))
        values_seen.append(tensor.array[0, 0])
    assert values_seen == expected


def test_requests_of_one_template_share_another():
    inputs = ControlInputs(config())
    like = InferRequest("m", {"IN": Tensor("IN", "INT32", np.zeros((1, 1), np.int32))}, sequence_id=1)
    template = RequestTemplate(like)
    sequence = Sequence(1)
    messages = []
    for value in (3, 4):
        request = template.request("r", [np.int32(value).tobytes()])
        messages.append(inputs.message(Step(QueuedRequest(request, 0), sequence, False, False), []))
    assert messages[0].template is messages[1].template is not template
    assert [int(message.inputs["IN"].array[0, 0]) for message in messages] == [3, 4]
    assert [*messages[0].inputs] == ["IN", "START", "END", "READY", "CORRID"]
    nulls = [inputs.null(template.request("r", [b"\1\0\0\0"]), []) for _ in range(2)]
    assert nulls[0] is nulls[1]
    assert nulls[0].inputs["IN"].array.tolist() == [[0]]


def test_a_slot_without_a_request_has_empty_strings():
    inputs = ControlInputs(config())
    words = Tensor("IN", "BYTES", np.array([[b"abc", b"d"]], np.object_))
    null = inputs.null(InferRequest("m", {"IN": words}), [])
    assert null.inputs["IN"].array.tolist() == [[b"", b""]]


def _state_config(initial: str = "") -> ModelConfig:
    return config("oldest {}", size=1, more=STATE.replace("INITIAL", initial))


class StateBench(Bench):
    """A scheduler of a model with implicit state."""

    def __init__(self, initial: dict[str, Tensor] | None = None) -> None:
        super().__init__("oldest {}", 1, STATE.replace("INITIAL", ""), instances=0)
        self.scheduler = SequenceScheduler(_state_config(), initial or {})
        self.add(1)

    def state(self) -> list[int]:
        """Return the state that the running request has."""
        slots = self.running[1].slots
        assert isinstance(slots, Slots)
        tensor = slots.messages[0].inputs["STATE"]
        assert tensor.shape[0] == 1
        return tensor.array[0].tolist()


def _ints(name: str, *values: int) -> Tensor:
    return Tensor(name, "INT32", np.array([values], np.int32))


def test_what_a_model_returns_as_state_is_an_input_of_the_next_request():
    bench = StateBench()
    bench.send("a1", 1, "S")
    bench.send("a2", 1)
    bench.run()
    assert bench.state() == [0]
    (response,) = bench.finish(out=_ints("OUT", 1), state=_ints("STATE_OUT", 5, 6))
    assert [tensor.name for tensor in response.outputs] == ["OUT"]
    bench.run()
    assert bench.state() == [5, 6]


def test_a_start_begins_with_the_initial_state():
    bench = StateBench({"STATE": _ints("STATE", 7, 8)})
    bench.send("a1", 1, "S")
    bench.send("a2", 1, "S")
    bench.run()
    assert bench.state() == [7, 8]
    bench.finish(state=_ints("STATE_OUT", 5))
    bench.run()
    assert bench.state() == [7, 8]


def test_sequences_have_states_of_their_own():
    bench = StateBench()
    bench.send("a1", 1, "S")
    bench.run()
    bench.finish(state=_ints("STATE_OUT", 5))
    bench.send("a2", 1, "E")
    bench.run()
    assert bench.state() == [5]
    bench.finish(state=_ints("STATE_OUT", 6))
    bench.send("b1", 2, "S")
    bench.run()
    assert bench.state() == [0]


def test_a_failed_request_leaves_the_state_as_it_was():
    bench = StateBench()
    bench.send("a1", 1, "S")
    bench.run()
    bench.finish(state=_ints("STATE_OUT", 5))
    bench.send("a2", 1)
    bench.send("a3", 1)
    bench.run()
    bench.scheduler.completed(bench.requests["a2"], InferResponse(error=internal("no")), 0)
    bench.running.clear()
    bench.free = [1]
    bench.run()
    assert bench.state() == [5]


def test_a_state_that_is_an_output_too_goes_to_the_client():
    configuration = _state_config()
    text_format.Parse('output [ { name: "STATE_OUT" data_type: TYPE_INT32 dims: [ -1 ] } ]', configuration)
    bench = StateBench()
    bench.scheduler = SequenceScheduler(configuration, {})
    bench.scheduler.instance_added(1)
    bench.send("a1", 1, "S")
    bench.run()
    (response,) = bench.finish(out=_ints("OUT", 1), state=_ints("STATE_OUT", 5))
    assert [tensor.name for tensor in response.outputs] == ["OUT", "STATE_OUT"]


def test_a_slot_without_a_request_has_an_empty_state_in_the_shape_of_another():
    bench = Bench("direct {}", 2, STATE.replace("INITIAL", ""))
    bench.send("a1", 1, "S")
    bench.send("b1", 2, "S")
    bench.run()
    bench.finish(state=_ints("STATE_OUT", 5, 6))
    bench.send("b2", 2)
    assert bench.run() == {1: ["-", "b2"]}
    slots = bench.running[1].slots
    assert slots is not None
    assert [message.inputs["STATE"].array.tolist() for message in slots.messages] == [[[0, 0]], [[5, 6]]]
