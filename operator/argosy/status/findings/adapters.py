"""The adapters of a model in its status: what servers report of each."""

from collections.abc import Sequence

from argosy.api import InferenceModel
from argosy.api.model.adapters import TAKES_ADAPTERS
from argosy.api.statusparts import AdapterStatus
from argosy.planning.adapters import adapter_name
from argosy.planning.variants import RoutedModel, VariantModel
from argosy.status.conditions import bounded
from argosy.status.progress.pool_progress import PoolProgress

_VERSION = 1
_LONGEST = 500


def without_adapters(model: RoutedModel, variants: Sequence[VariantModel]) -> str:
    """Return which variants of a model with adapters take none; "" if all do, or it has no adapters."""
    names = [variant.spec_name for variant in variants if variant.spec.backend not in TAKES_ADAPTERS]
    if not model.declared.spec.adapters or not names:
        return ""
    takes = " and ".join(sorted(TAKES_ADAPTERS))
    return (
        f"spec.adapters: {', '.join(names)} gets no requests for adapters, which only the backends {takes} load: the "
        "other variants answer these"
    )


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
