"""What passes between the operator and an agent: what a server should hold, and what it says of itself. Pure.

`models`: the values. `documents`: their JSON texts, and where they stand. `sizes`: how large these get. `fitting`: a
state that is cut to what an object holds. `activation`: what a pool's activator is told and says. `fields`: reading
JSON that may be anything.
The operator imports this room; nothing here knows how an agent works.
"""

from .models import (
    FailureKind,
    LoadedModel,
    LoadState,
    RenderedModel,
    RenderedRepository,
    VersionSource,
    in_load_order,
)

__all__ = [
    "RenderedRepository",
    "RenderedModel",
    "VersionSource",
    "in_load_order",
    "LoadedModel",
    "LoadState",
    "FailureKind",
]
