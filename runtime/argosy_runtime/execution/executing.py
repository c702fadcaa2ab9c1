"""Execution of one batch on a loaded model, on the current thread: shared by threads and worker processes."""

import traceback
from collections.abc import Sequence

from argosy_runtime import cpus
from argosy_runtime.backends import resolve
from argosy_runtime.backends.contract import (
    CheckedInstance,
    ExecutionTimes,
    Host,
    HostPolicy,
    InstanceSpec,
    ManagedInstance,
    ModelInstance,
    Responder,
)
from argosy_runtime.backends.engines.commands import CheckReadiness, Command, not_taken
from argosy_runtime.errors import ServingError, internal, unavailable
from argosy_runtime.failures.translation import explained, failure
from argosy_runtime.messages import InferRequest


def load(spec: InstanceSpec, host: Host) -> ModelInstance:
    """Load an instance by its backend. Raises ServingError that names the model, for any failure."""
    try:
        _bind(spec.host_policy)
        loaded: ModelInstance = resolve(spec.config.backend).load(spec, host)
    except ServingError as error:
        explained(error)
        raise
    except (Exception, SystemExit) as fault:
        raise failure(f"failed to load '{spec.config.name}' version {spec.version}: {_brief(fault)}", fault) from fault
    return loaded


def _bind(policy: HostPolicy) -> None:
    """Bind this thread, and those that the model starts from it, as a host policy says. Raises ServingError."""
    if policy.cpu_cores:
        try:
            cpus.bind(policy.cpu_cores)
        except OSError as error:
            raise internal(f"Unable to set NUMA thread affinity: {error.strerror}") from error
    if policy.numa_node is not None:
        try:
            cpus.bind_memory(policy.numa_node)
        except OSError as error:
            raise internal(f"Unable to set NUMA memory policy: {error.strerror}") from error


def execute(
    model: ModelInstance, name: str, requests: Sequence[InferRequest], responder: Responder
) -> tuple[ExecutionTimes | None, ServingError | None]:
    """Run a batch. Return its times, or the error of the requests that it has not answered."""
    try:
        return model.execute(requests, responder), None
    except ServingError as error:
        return None, explained(error)
    except (Exception, SystemExit) as fault:
        text = "".join(traceback.format_exception(fault))
        return None, failure(f"Failed to process the request(s) for model '{name}', message: {text}", fault)


def checks_readiness(model: ModelInstance | None) -> bool:
    """Return whether a model says itself whether it is ready."""
    return isinstance(model, CheckedInstance) and model.checks_readiness


def carry_out(model: ModelInstance | None, about: str, command: Command) -> None:
    """Have a model carry out a command; `about` begins the errors. Raises ServingError, for any failure."""
    try:
        if isinstance(command, CheckReadiness):
            if isinstance(model, CheckedInstance) and not model.is_ready():
                raise unavailable(f"{about}: is_ready returned False")
        elif isinstance(model, ManagedInstance):
            model.manage(command)
        else:
            raise not_taken(about, command)
    except ServingError:
        raise
    except (Exception, SystemExit) as fault:
        raise internal(f"{about}: {_brief(fault)}") from fault


def _brief(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
