"""One engine on one GPU that answers batches."""

from typing import Any

from argosy_runtime.backends.batching import BatchedInstance
from argosy_runtime.backends.contract import Host, InstanceSpec
from argosy_runtime.errors import invalid

from . import library, profiles, validation
from .execution import ProfileContext
from .graphs import Graphs
from .graphspecs import graph_specs
from .plan import OpenPlan
from .running import Device, PlanFramework
from .signature import Profile, Signature, read_profile, read_signature


class PlanInstance(BatchedInstance):
    """An engine on a GPU, with an execution context for each of its profiles. Raises ServingError."""

    def __init__(self, spec: InstanceSpec, plan: OpenPlan, device: Device, host: Host) -> None:
        config, signature = spec.config, read_signature(plan.engine)
        used = _profiles(spec, plan.engine, signature)
        validation.check(config, signature, used, spec.name)
        specs = graph_specs(config)
        self._device = device
        # Outlives the contexts, which are made of it.
        self._plan: OpenPlan | None = plan
        contexts = [
            ProfileContext(
                _context(spec, plan, profile, device), profile, signature, device.stream, plan.logger, spec.name
            )
            for profile in used
        ]
        self._graphs = Graphs(signature, device.stream, device.pool, host, spec.name)
        self._graphs.capture(contexts, specs)
        framework = PlanFramework(config, spec.name, signature, contexts, self._graphs, device, host)
        super().__init__(config, spec.version, framework)

    def close(self) -> None:
        """Release graphs and contexts, then the engine where no other instance uses it, then the stream."""
        self._graphs.close()
        super().close()
        self._plan = None
        self._device.pool.close()
        self._device.stream.close()


def _profiles(spec: InstanceSpec, engine: Any, signature: Signature) -> list[Profile]:
    configured = profiles.configured(profiles.group_of(spec.config, spec.name))
    for label, index in configured:
        if index >= signature.profiles:
            raise invalid(
                f"Can not set the specified optimization profile {label}[{index}] for {spec.name}. Expected "
                f"optimization profile index range 0-{signature.profiles - 1}"
            )
    return [read_profile(engine, signature, index, label) for label, index in configured]


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
