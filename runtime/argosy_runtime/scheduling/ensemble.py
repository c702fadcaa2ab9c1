"""An ensemble as a state machine: responses of steps go in, calls of further steps and its own responses come out.

Tensors live in scopes. A step that answers once writes into the scope it was called in. A decoupled step answers any
number of times, and each answer opens a scope of its own below, in which the steps behind it run again; they see the
scopes above.
The ensemble answers once for each scope at the depth of its deepest output.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.errors import ServingError, internal, invalid
from argosy_runtime.messages import InferRequest, InferResponse, Tensor
from argosy_runtime.modelconfig.ensembles.graph import EnsembleGraph, EnsembleStep
from argosy_runtime.modelconfig.ensembles.lineage import Lineage


@dataclass(frozen=True, slots=True)
class Step:
    """One step; maps go from model to ensemble tensor. `stream` is the decoupled step that drives it, if any.

    `device_outputs` are the model's outputs that only steps read which can take them in a device's memory.
    """

    index: int
    model: str
    version: str
    inputs: Mapping[str, str]
    optional: frozenset[str]
    outputs: Mapping[str, str]
    decoupled: bool
    stream: int | None
    device_outputs: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class EnsembleSteps:
    """The graph, ready to run: steps, outputs, and the decoupled step at whose pace it answers (None: once)."""

    name: str
    steps: tuple[Step, ...]
    outputs: tuple[str, ...]
    stream: int | None

    @classmethod
    def of(
        cls,
        config: ModelConfig,
        step_config: Callable[[str, int], ModelConfig],
        takes_device_tensors: Callable[[ModelConfig], bool] = lambda config: False,
    ) -> "EnsembleSteps":
        """Compile a config whose graph is checked; `step_config(model, version)` gives a step's model's config.

        Raises ServingError where it cannot run.
        """
        graph = EnsembleGraph.parse(config)
        models = [step_config(step.model_name, step.model_version) for step in graph.steps]
        lineage = Lineage.of(graph, lambda step: models[step.index].model_transaction_policy.decoupled)
        if len(lineage.streams) < len(graph.steps):
            raise invalid(f"ensemble '{graph.name}' contains a cycle or a tensor that no step writes")
        if lineage.mixed:
            raise invalid(_mixed(graph, lineage.mixed[0]))
        devices = frozenset(step.index for step in graph.steps if takes_device_tensors(models[step.index]))
        steps = tuple(
            _compiled(step, models[step.index], lineage.streams[step.index], _device_outputs(step, graph, devices))
            for step in graph.steps
        )
        return cls(graph.name, steps, graph.outputs, lineage.output)


def _compiled(step: EnsembleStep, model: ModelConfig, stream: int | None, device_outputs: frozenset[str]) -> Step:
    return Step(
        index=step.index,
        model=step.model_name,
        version="" if step.model_version < 0 else str(step.model_version),
        inputs=step.inputs,
        optional=frozenset(tensor.name for tensor in model.input if tensor.optional),
        outputs=step.outputs,
        decoupled=model.model_transaction_policy.decoupled,
        stream=stream,
        device_outputs=device_outputs,
    )


def _device_outputs(step: EnsembleStep, graph: EnsembleGraph, devices: frozenset[int]) -> frozenset[str]:
    """Outputs that only steps read, all of which (by index in `devices`) can take them where they are."""
    readers = {output: [s.index for s in graph.consumers(tensor)] for output, tensor in step.outputs.items()}
    return frozenset(
        output
        for output, tensor in step.outputs.items()
        if tensor not in graph.outputs and readers[output] and devices.issuperset(readers[output])
    )


def _mixed(graph: EnsembleGraph, reader: EnsembleStep | None) -> str:
    where = "its outputs" if reader is None else f"step {reader.index} ('{reader.model_name}')"
    return (
        f"ensemble '{graph.name}': {where} joins the answers of two independent decoupled steps; "
        "let one of them feed the other, or join them in a Python model"
    )


@dataclass(slots=True, eq=False)
class Scope:
    """Tensors known at one place of the tree of answers."""

    parent: "Scope | None"
    stream: int | None
    tensors: dict[str, Tensor] = field(default_factory=dict)
    children: list["Scope"] = field(default_factory=list)
    called: set[int] = field(default_factory=set)
    answered: bool = False

    def find(self, name: str) -> Tensor | None:
        """A tensor of this scope or one above."""
        scope: Scope | None = self
        while scope is not None:
            if name in scope.tensors:
                return scope.tensors[name]
            scope = scope.parent
        return None


@dataclass(slots=True, eq=False)
class StepCall:
    """A step to run now: its request, and where its answers belong. `made`: what its answers had, by output."""

    step: Step
    scope: Scope
    request: InferRequest
    made: dict[str, Tensor] = field(default_factory=dict)


@dataclass(slots=True)
class Progress:
    """What follows from an event: calls to make, responses to send. The last response of the ensemble is final."""

    calls: list[StepCall] = field(default_factory=list)
    responses: list[InferResponse] = field(default_factory=list)


class EnsembleRun:
    """One request on its way through an ensemble."""

    def __init__(self, steps: EnsembleSteps, request: InferRequest, version: str) -> None:
        self._steps = steps
        self._request = request
        self._version = version
        self._root = Scope(parent=None, stream=None, tensors=dict(request.inputs))
        self._open = 0
        # Tensors that stood in an answer, by identity: scopes keep them all for as long as this lives.
        self._sent: set[int] = set()
        self.done = False

    def start(self) -> Progress:
        """The steps that the request's own inputs allow."""
        progress = Progress()
        self._explore(self._root, progress)
        self._settle(progress)
        return progress

    def receive(self, call: StepCall, response: InferResponse) -> Progress:
        """A step answered; `response.final` ends its call."""
        progress = Progress()
        if self.done:
            return progress
        if response.error is not None:
            return self._fail(response.error)
        if response.final:
            self._open -= 1
        if response.outputs or not call.step.decoupled:
            got = {tensor.name: tensor for tensor in response.outputs}
            if missing := [name for name in call.step.outputs if name not in got]:
                return self._fail(self._unwritten(call.step, missing[0]))
            self._explore(self._write(call, got, response.repeated), progress)
        self._settle(progress)
        return progress

    def _unwritten(self, step: Step, output: str) -> ServingError:
        return internal(
            f"in ensemble '{self._steps.name}', the step of model '{step.model}' answered without its output '{output}'"
        )

    def _write(self, call: StepCall, got: Mapping[str, Tensor], repeated: frozenset[str]) -> Scope:
        """Put an answer where it belongs; returns the scope in which something became known."""
        scope = call.scope
        if call.step.decoupled:
            scope = Scope(parent=call.scope, stream=call.step.index)
            call.scope.children.append(scope)
        for name, tensor_name in call.step.outputs.items():
            if name not in repeated or name not in call.made:
                call.made[name] = got[name].renamed(tensor_name)
            scope.tensors[tensor_name] = call.made[name]
        return scope

    def _explore(self, scope: Scope, progress: Progress) -> None:
        """Call every step that belongs to this scope, or one below, and has all it needs."""
        for step in self._steps.steps:
            if step.stream == scope.stream and step.index not in scope.called:
                inputs = self._inputs(step, scope)
                if inputs is not None:
                    scope.called.add(step.index)
                    self._open += 1
                    progress.calls.append(StepCall(step, scope, self._step_request(step, inputs)))
        self._answer(scope, progress)
        for child in scope.children:
            self._explore(child, progress)

    def _inputs(self, step: Step, scope: Scope) -> dict[str, Tensor] | None:
        inputs: dict[str, Tensor] = {}
        for name, tensor_name in step.inputs.items():
            tensor = scope.find(tensor_name)
            if tensor is not None:
                inputs[name] = tensor.renamed(name)
            elif name not in step.optional or self._written_by_a_step(tensor_name):
                return None
        return inputs

    def _written_by_a_step(self, tensor_name: str) -> bool:
        return any(tensor_name in step.outputs.values() for step in self._steps.steps)

    def _step_request(self, step: Step, inputs: dict[str, Tensor]) -> InferRequest:
        request = self._request
        return InferRequest(
            model_name=step.model,
            model_version=step.version,
            inputs=inputs,
            id=request.id,
            requested_outputs=tuple(step.outputs),
            parameters=request.parameters,
            sequence_id=request.sequence_id,
            sequence_start=request.sequence_start,
            sequence_end=request.sequence_end,
            priority=request.priority,
            timeout_us=request.timeout_us,
            device_outputs=step.device_outputs,
        )

    def _answer(self, scope: Scope, progress: Progress) -> None:
        if scope.answered or scope.stream != self._steps.stream:
            return
        names = self._request.requested_outputs or self._steps.outputs
        tensors = [scope.find(name) for name in names]
        outputs = [tensor for tensor in tensors if tensor is not None]
        if len(outputs) < len(names):
            return
        scope.answered = True
        once = self._steps.stream is None
        self.done = once
        repeated = frozenset(tensor.name for tensor in outputs if id(tensor) in self._sent)
        self._sent.update(map(id, outputs))
        response = InferResponse(
            self._steps.name, self._version, self._request.id, outputs, final=once, repeated=repeated
        )
        progress.responses.append(response)

    def _settle(self, progress: Progress) -> None:
        """Mark the end: nothing runs any more."""
        if self._open or self.done:
            return
        self.done = True
        if progress.responses:
            progress.responses[-1].final = True
        elif self._steps.stream is not None:
            progress.responses.append(InferResponse(self._steps.name, self._version, self._request.id))
        else:
            error = internal(f"in ensemble '{self._steps.name}', not all outputs were produced")
            progress.responses.append(self._error(error))

    def _fail(self, error: ServingError) -> Progress:
        self.done = True
        return Progress(responses=[self._error(error)])

    def _error(self, error: ServingError) -> InferResponse:
        return InferResponse(self._steps.name, self._version, self._request.id, error=error)
