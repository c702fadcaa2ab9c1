"""The language between the operator, an agent, a builder and an activator. Pure.

`models`: the values. `documents`: their JSON texts, and their keys. `sizes`: how large these get. `fitting`: a state
that is cut to what an object holds. `activation`: the texts of a pool's activator. `builds`, `builddocuments`: those of
builds. `engine_options`: the options of builders. `fields`: reading JSON of any kind. The operator imports this
package; nothing here knows how an agent works.
"""

from .models import (
    WAY_OUT,
    FailureKind,
    LoadedModel,
    LoadState,
    RenderedModel,
    RenderedRepository,
    VersionConfig,
    VersionSource,
    in_load_order,
)

__all__ = [
    "RenderedRepository",
    "RenderedModel",
    "VersionSource",
    "VersionConfig",
    "in_load_order",
    "LoadedModel",
    "LoadState",
    "FailureKind",
    "WAY_OUT",
]
