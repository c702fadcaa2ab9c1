"""One engine on one GPU that answers batches."""

from collections.abc import Sequence
from typing import Any

from argosy_runtime.backends.batching import Batcher
from argosy_runtime.backends.contract import ExecutionTimes, Host, InstanceSpec, Responder
from argosy_runtime.errors import internal, invalid
from argosy_runtime.messages import InferRequest

from . import library, profiles, validation
from .execution import ProfileContext
from .graphs import Graphs
from .graphspecs import graph_specs
from .plan import OpenPlan
from .running import Device, PlanFramework
from .signature import Profile, Signature, profile, signature


class PlanInstance:
    """A loaded model: an execution context for each of its profiles. Raises ServingError."""

    def __init__(self, spec: InstanceSpec, plan: OpenPlan, device: Device, host: Host) -> None:
        config, found = spec.config, signature(plan.engine)
        wanted = _profiles(spec, plan.engine, found)
        validation.check(config, found, wanted, spec.name)
        specs = graph_specs(config)
        self._name = config.name
        self._device = device
        # Outlives the contexts, which are made of it.
        self._plan: OpenPlan | None = plan
        contexts = [
            ProfileContext(_context(spec, plan, each, device), each, found, device.stream, plan.logger, spec.name)
            for each in wanted
        ]
        self._graphs = Graphs(found, device.stream, device.pool, host, spec.name)
        self._graphs.capture(contexts, specs)
        framework = PlanFramework(config, spec.name, found, contexts, self._graphs, device, host)
        self._batcher: Batcher | None = Batcher(config, spec.version, framework)

    def execute(self, requests: Sequence[InferRequest], responder: Responder) -> ExecutionTimes:
        """Join, run once, split."""
        if self._batcher is None:
            raise internal(f"model '{self._name}' is unloaded")
        return self._batcher.execute(requests, responder)

    def close(self) -> None:
        """Release graphs and contexts, then the engine where no other instance uses it, then the stream."""
        self._graphs.close()
        self._batcher = None
        self._plan = None
        self._device.pool.close()
        self._device.stream.close()


def _profiles(spec: InstanceSpec, engine: Any, found: Signature) -> list[Profile]:
    wanted = profiles.configured(profiles.group_of(spec.config, spec.name))
    for label, index in wanted:
        if index >= found.profiles:
            raise invalid(
                f"Can not set the specified optimization profile {label}[{index}] for {spec.name}. Expected "
                f"optimization profile index range 0-{found.profiles - 1}"
            )
    return [profile(engine, found, index, label) for label, index in wanted]


def _context(spec: InstanceSpec, plan: OpenPlan, used: Profile, device: Device) -> Any:
    device.stream.enter()
    context = plan.engine.create_execution_context(library.allocation_strategy(spec.config, spec.name))
    if context is None:
        raise plan.logger.failure("unable to create TensorRT context")
    if used.index != 0:
        try:
            context.set_optimization_profile_async(used.index, device.stream.handle)
        except RuntimeError as error:
            raise plan.logger.failure(f"{error} for {spec.name}") from error
        device.stream.synchronize()
    return context


__all__ = ["PlanInstance"]
