"""An ensemble's graph compiled to run: tensors by number, and the count of tensors that each step waits for.

A step is driven by the innermost decoupled step (one that answers any number of times) among those that its inputs stem
from: it runs once for each of its answers. Other steps run once for each request.
"""

from collections.abc import Callable

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.errors import invalid
from argosy_runtime.fifo_cache import FifoCache
from argosy_runtime.messages import RequestTemplate, ResponseTemplate
from argosy_runtime.modelconfig.ensembles.graph import EnsembleGraph, EnsembleStep, Lineage

TemplateKey = tuple[object, ...]

NO_STREAM = -1
# Templates of each kind that are cached.
_TEMPLATES = 1024


class Step:
    """One step. `inputs` and `outputs` are the model's tensors with the numbers of the ensemble's.

    `stream` is the index of the decoupled step that drives it, or NO_STREAM. `needs` is the number of tensors it
    waits for. `device_outputs` are the model's outputs that are read only by steps that can take them in a device's
    memory.
    """

    __slots__ = (
        "decoupled",
        "device_outputs",
        "index",
        "inputs",
        "model",
        "needs",
        "outputs",
        "requested",
        "stream",
        "version",
    )

    def __init__(
        self,
        declared: EnsembleStep,
        slots: dict[str, int],
        decoupled: bool,
        stream: int | None,
        device_outputs: frozenset[str],
    ) -> None:
        self.index = declared.index
        self.model = declared.model_name
        self.version = "" if declared.model_version < 0 else str(declared.model_version)
        self.inputs = [(name, slots[tensor]) for name, tensor in declared.inputs.items()]
        self.outputs = {name: slots[tensor] for name, tensor in declared.outputs.items()}
        self.requested = tuple(declared.outputs)
        self.decoupled = decoupled
        self.stream = NO_STREAM if stream is None else stream
        self.device_outputs = device_outputs
        self.needs = len({slot for _, slot in self.inputs})

    def reads(self, slot: int) -> bool:
        """Return whether the step reads a tensor."""
        return slot in {read for _, read in self.inputs}


class RequestedOutputs:
    """The outputs of a request, by name and number, and the steps that produce them.

    `flags` has all tensors, True for those outputs. `readers` are the steps that wait for a tensor, by its number.
    `stream` is the decoupled step at whose pace the ensemble answers, NO_STREAM for once.
    """

    __slots__ = (
        "_at_depth",
        "count",
        "flags",
        "names",
        "needing_nothing",
        "readers",
        "slots",
        "stream",
    )

    def __init__(self, names: tuple[str, ...], graph: "EnsembleSteps") -> None:
        self.names = names
        self.slots = [graph.slots[name] for name in names]
        among = set(self.slots)
        self.count = len(among)
        self.flags = [slot in among for slot in range(len(graph.slots))]
        steps = graph.needed_steps(among)
        self.readers = [[step for step in steps if step.reads(slot)] for slot in range(len(graph.slots))]
        self.needing_nothing = [step for step in steps if not step.needs]
        self.stream = graph.stream_of(among)
        self._at_depth = {
            depth: len([1 for step in steps if step.stream == depth]) for depth in range(NO_STREAM, len(graph.steps))
        }

    def at_depth(self, stream: int) -> int:
        """Return the number of steps that a decoupled step drives."""
        return self._at_depth[stream]


class EnsembleSteps:
    """The compiled graph, and caches of its requests.

    The templates are of steps' requests and of the ensemble's responses, by all that decides them.
    """

    def __init__(
        self,
        graph: EnsembleGraph,
        slots: dict[str, int],
        steps: list[Step],
    ) -> None:
        self.name = graph.name
        self.slots = slots
        self.inputs = [slots[name] for name in graph.inputs]
        self.steps = steps
        self.needs = [step.needs for step in steps]
        self._outputs = graph.outputs
        self._requested = FifoCache[TemplateKey, RequestedOutputs](_TEMPLATES)
        self.request_templates = FifoCache[TemplateKey, RequestTemplate](_TEMPLATES)
        self.response_templates = FifoCache[TemplateKey, ResponseTemplate](_TEMPLATES)

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
        slots = _numbered(graph)
        steps = [
            Step(
                step,
                slots,
                bool(models[step.index].model_transaction_policy.decoupled),
                lineage.streams[step.index],
                _device_outputs(step, graph, devices),
            )
            for step in graph.steps
        ]
        return cls(graph, slots, steps)

    def needed_steps(self, slots: set[int]) -> list[Step]:
        """Return the steps that produce these tensors, directly or through others, as Triton prunes."""
        indexes = self.steps
        unwanted = {self.slots[name] for name in self._outputs} - slots
        while True:
            unread = unwanted.difference(*[[slot for _, slot in step.inputs] for step in indexes])
            dropped = [step for step in indexes if step.outputs and unread.issuperset(step.outputs.values())]
            if not dropped:
                return indexes
            indexes = [step for step in indexes if step not in dropped]
            unwanted |= {slot for step in dropped for _, slot in step.inputs} - slots

    def stream_of(self, slots: set[int]) -> int:
        """Return the innermost of the decoupled steps that tensors stem from, NO_STREAM for none."""
        deepest, most = NO_STREAM, 0
        for step in self.steps:
            stream = step.index if step.decoupled else step.stream
            if not slots.isdisjoint(step.outputs.values()) and self._depth(stream) > most:
                deepest, most = stream, self._depth(stream)
        return deepest

    def _depth(self, stream: int) -> int:
        return 0 if stream == NO_STREAM else 1 + self._depth(self.steps[stream].stream)

    def requested_outputs(self, requested: tuple[str, ...]) -> RequestedOutputs:
        """Return the outputs of a request; all of them where it names none."""
        result = self._requested.get(requested)
        if result is None:
            result = RequestedOutputs(requested or self._outputs, self)
            self._requested.put(requested, result)
        return result


def _numbered(graph: EnsembleGraph) -> dict[str, int]:
    """Return a number for each tensor."""
    names = [*graph.inputs, *graph.outputs]
    names += [name for step in graph.steps for name in (*step.inputs.values(), *step.outputs.values())]
    return {name: slot for slot, name in enumerate(dict.fromkeys(names))}


def _device_outputs(step: EnsembleStep, graph: EnsembleGraph, devices: frozenset[int]) -> frozenset[str]:
    """Return the outputs that only steps read, all of which (by index in `devices`) take them in device memory."""
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
