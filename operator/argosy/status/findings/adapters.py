"""The adapters of a model in its status: what servers report of each."""

from argosy.api import InferenceModel
from argosy.api.statusparts import AdapterStatus
from argosy.planning.adapters import adapter_name
from argosy.status.conditions import bounded
from argosy.status.progress import PoolProgress

_VERSION = 1
_LONGEST = 500


def adapter_statuses(model: InferenceModel, progress: PoolProgress) -> tuple[AdapterStatus, ...]:
    """Return the status of each adapter of a model."""
    statuses = []
    for adapter in model.spec.adapters:
        name = adapter_name(model.name, adapter.name)
        servers = progress.servers_with(name)
        loading = progress.loading(name, [_VERSION], servers)
        current = next(entry for entry in loading.versions() if entry.version == _VERSION)
        message = current.reason or ("" if len(loading.loaded) == len(servers) else loading.finding().message)
        statuses.append(
            AdapterStatus(
                name=adapter.name,
                state=str(current.state),
                message=bounded(message, _LONGEST),
                replicas=len(servers),
                available_replicas=len(loading.loaded),
                digests=current.digests,
            )
        )
    return tuple(statuses)
