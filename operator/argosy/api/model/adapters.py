"""LoRA adapters of a model: addressed as models, loaded and unloaded while the engine runs."""

from collections.abc import Collection, Iterator, Sequence
from typing import Annotated

from pydantic import Field

from argosy.api.values.base import ApiModel, Fault, Int
from argosy.api.values.meta import ModelName
from argosy.api.values.storage import Digest, StorageUri
from argosy.api.values.tensors import BY_NAME
from argosy_runtime.modelconfig.parameters.adapters import RANKS

MAX_ADAPTERS = 64
DEFAULT_RANK = 64
MOST_AT_ONCE = 8
TAKES_ADAPTERS = frozenset({"vllm", "tensorrtllm"})
"""Backends whose engines load adapters while they run."""


class Adapter(ApiModel):
    """A LoRA adapter. Requests name it as their model; it is loaded on each server of the model."""

    name: ModelName = Field(description="Its name for clients, unique in the pool.")
    storage_uri: StorageUri = Field(
        description="Where its files are, as in spec.storageUri: adapter_config.json and the weights."
    )
    digest: Digest | None = Field(default=None, description="Its files' digest. Default: not checked.")
    rank: Int | None = Field(
        default=None,
        ge=1,
        le=RANKS[-1],
        description="Its rank (r in adapter_config.json), for which the engine reserves memory. Default: "
        f"{DEFAULT_RANK}.",
    )
    alias: ModelName | None = Field(
        default=None,
        description="Another name, which several adapters may share: its requests are divided among them by weight. "
        "Default: none.",
    )
    weight: Int | None = Field(
        default=None,
        ge=0,
        le=1_000_000,
        description="Its share of the requests for its alias, in proportion to the others'. Default: 1 with an alias.",
    )


Adapters = Annotated[
    tuple[Adapter, ...],
    Field(
        max_length=MAX_ADAPTERS,
        description="LoRA adapters of a model of format vllm or tensorrt_llm, or with variants of these. They are "
        "added, changed and removed while its engines run. Default: none.",
        json_schema_extra=BY_NAME,
    ),
]


def aliases(adapters: Sequence[Adapter]) -> dict[str, list[Adapter]]:
    """Return the adapters of each alias, in the order of the spec."""
    shared: dict[str, list[Adapter]] = {}
    for adapter in adapters:
        if adapter.alias is not None:
            shared.setdefault(adapter.alias, []).append(adapter)
    return shared


def adapter_faults(adapters: Sequence[Adapter], backends: Collection[str]) -> Iterator[Fault]:
    """Yield what is wrong with the adapters of a model that these backends run, one for each of its variants."""
    if adapters and not TAKES_ADAPTERS.intersection(backends):
        runs = " and ".join(sorted(set(backends)))
        yield Fault(
            f"only engines of the backends {' and '.join(sorted(TAKES_ADAPTERS))} load adapters, and {runs} runs "
            f"{'this model' if len(backends) == 1 else 'its variants'}; use modelFormat vllm",
            ("adapters",),
        )
    names: set[str] = set()
    for index, adapter in enumerate(adapters):
        if adapter.name in names:
            yield Fault(f"there are two adapters {adapter.name!r}; rename one", ("adapters", index, "name"))
        names.add(adapter.name)
        if adapter.weight is not None and adapter.alias is None:
            yield Fault("divides the requests for an alias; set alias, or leave it out", ("adapters", index, "weight"))
    for alias, shared in aliases(adapters).items():
        index = adapters.index(shared[0])
        if alias in names:
            yield Fault(f"{alias!r} is the name of an adapter; choose another", ("adapters", index, "alias"))
        if not sum(1 if adapter.weight is None else adapter.weight for adapter in shared):
            yield Fault(f"all adapters of alias {alias!r} have weight 0; raise one", ("adapters", index, "weight"))
