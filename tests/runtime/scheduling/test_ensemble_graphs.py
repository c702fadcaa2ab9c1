"""Any graph, its steps answering in any order: each runs once for each answer that drives it, on the right tensors."""

from dataclasses import dataclass, field
from itertools import product

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.errors import ServingError
from argosy_runtime.messages import InferRequest, InferResponse, Tensor
from argosy_runtime.scheduling.ensemble import EnsembleRun, StepCall
from argosy_runtime.scheduling.ensemble_steps import EnsembleSteps
from argosy_runtime.tensors import raw_tensor

ANSWERS = 2
Path = tuple[int, ...]


@dataclass
class Graph:
    """Steps read what stands before them; step n writes tensor t<n>, in two answers where it streams."""

    reads: list[list[str]]
    streams: list[bool]
    outputs: list[str]
    config: ModelConfig = field(init=False)

    def __post_init__(self) -> None:
        self.config = ModelConfig(name="e")
        self.config.input.add(name="in")
        for name in self.outputs:
            self.config.output.add(name=name)
        for index, reads in enumerate(self.reads):
            step = self.config.ensemble_scheduling.step.add(model_name=f"m{index}", model_version=-1)
            step.input_map.update({f"x{i}": name for i, name in enumerate(reads)})
            step.output_map["y"] = f"t{index}"

    def model(self, name: str, version: int) -> ModelConfig:
        config = ModelConfig(name=name)
        config.model_transaction_policy.decoupled = self.streams[int(name[1:])]
        return config


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    count = draw(st.integers(1, 5))
    names = ["in", *[f"t{index}" for index in range(count)]]
    reads = [draw(st.lists(st.sampled_from(names[: n + 1]), min_size=1, max_size=3)) for n in range(count)]
    streams = [draw(st.integers(0, 3)) == 0 for _ in range(count)]
    outputs = draw(st.lists(st.sampled_from(names[1:]), min_size=1, max_size=3, unique=True))
    return Graph(reads, streams, outputs)


def value_of(step: int, inputs: list[float], answer: int) -> float:
    """Return the value that a step makes of its inputs."""
    return float(hash((step, tuple(inputs), answer)) % 1_000_003)


def expected(graph: Graph) -> tuple[list[tuple[int, list[float]]], list[list[float]]]:
    """Return every call of a step (its index and inputs), and the answers, worked out tensor by tensor.

    A tensor has a value for each path of answers (one of each stream that it stems from, outermost first).
    """
    lines: dict[str, list[int]] = {"in": []}
    values: dict[str, dict[Path, float]] = {"in": {(): 1.0}}
    calls = []
    for index, reads in enumerate(graph.reads):
        line = max((lines[name] for name in reads), key=len)
        made: dict[Path, float] = {}
        for path in product(range(ANSWERS), repeat=len(line)):
            inputs = [values[name][path[: len(lines[name])]] for name in reads]
            calls.append((index, inputs))
            if graph.streams[index]:
                made |= {(*path, k): value_of(index, inputs, k) for k in range(ANSWERS)}
            else:
                made[path] = value_of(index, inputs, 0)
        lines[f"t{index}"] = [*line, index] if graph.streams[index] else line
        values[f"t{index}"] = made
    line = max((lines[name] for name in graph.outputs), key=len)
    paths = product(range(ANSWERS), repeat=len(line))
    return calls, [[values[name][path[: len(lines[name])]] for name in graph.outputs] for path in paths]


def needed_steps(graph: Graph, outputs: list[str]) -> set[int]:
    """Return the steps that lead to these outputs, or to a tensor that is no output and is read by no step."""
    read = {name for reads in graph.reads for name in reads}
    ends = {f"t{index}" for index in range(len(graph.reads))} - read - set(graph.outputs)
    needed = {*outputs, *ends}
    for index in reversed(range(len(graph.reads))):
        if f"t{index}" in needed:
            needed.update(graph.reads[index])
    return {index for index in range(len(graph.reads)) if f"t{index}" in needed}


def number(tensor: Tensor) -> float:
    return float(tensor.array[0])


def response(value: float, final: bool, raw: bool) -> InferResponse:
    array = np.array([value], np.float32)
    made = raw_tensor("y", "FP32", (1,), array.tobytes()) if raw else Tensor("y", "FP32", array)
    return InferResponse(outputs=[made], final=final)


@given(graphs(), st.booleans(), st.data())
def test_every_step_runs_for_every_answer_that_drives_it(graph: Graph, raw: bool, data: st.DataObject):
    try:
        steps = EnsembleSteps.of(graph.config, graph.model)
    except ServingError:
        assume(False)
    requested = data.draw(st.lists(st.sampled_from(graph.outputs), min_size=1, unique=True) | st.just([]))
    inputs = {"in": Tensor("in", "FP32", np.ones(1, np.float32))}
    run = EnsembleRun(steps, InferRequest("e", inputs, requested_outputs=tuple(requested)))
    called: list[tuple[int, list[float]]] = []
    waiting: list[tuple[StepCall, list[float], int]] = []
    responses: list[InferResponse] = []
    progress = run.start()
    while True:
        for call in progress.calls:
            inputs = [number(call.request.inputs[name]) for name, _ in call.step.inputs]
            called.append((call.step.index, inputs))
            waiting.append((call, inputs, 0))
        responses += progress.responses
        if not waiting or run.done:
            break
        call, inputs, answer = waiting.pop(data.draw(st.integers(0, len(waiting) - 1)))
        last = not call.step.decoupled or answer == ANSWERS - 1
        if not last:
            waiting.append((call, inputs, answer + 1))
        progress = run.receive(call, response(value_of(call.step.index, inputs, answer), last, raw))
    narrowed = Graph(graph.reads, graph.streams, requested or graph.outputs)
    calls, answers = expected(narrowed)
    needed = needed_steps(graph, narrowed.outputs)
    calls = [call for call in calls if call[0] in needed]
    assert [one.final for one in responses] == [False] * (len(responses) - 1) + [True]
    reported = [[number(tensor) for tensor in one.outputs] for one in responses if one.outputs]
    assert sorted(reported) == sorted(answers)
    if not any(graph.streams):
        assert all(call in calls for call in called), "some may not have run: the answer needed them no more"
    elif steps.requested_outputs(tuple(requested)).stream >= 0:
        assert sorted(called) == sorted(calls)
