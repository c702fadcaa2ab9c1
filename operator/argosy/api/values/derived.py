"""Values derived from specs, cached as long as the spec is: a resource that does not change keeps its spec object.

However many resources there are, each has its values for itself, and those of a spec that is gone are dropped with it.
"""

import weakref
from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from typing import Any, Concatenate, ParamSpec, TypeVar

from argosy.api.values.meta import PoolMember

Member = TypeVar("Member", bound=PoolMember)
Value = TypeVar("Value")
Rest = ParamSpec("Rest")

_MOST_OF_A_SPEC = 256
"""Values of one spec, of which a model has one for each place on a server. All are dropped where it would have more."""


@dataclass(frozen=True, slots=True, eq=False)
class _Cached:
    """What is derived from a spec, by the member's name and the further arguments."""

    spec: weakref.ref[Any]
    values: dict[Hashable, Any] = field(default_factory=dict)


def cached_with_spec(
    derive: Callable[Concatenate[Member, Rest], Value],
) -> Callable[Concatenate[Member, Rest], Value]:
    """Return a pure function of a member's name, its spec and hashable arguments that derives each value once.

    A value must not refer to the spec itself, which would then never be gone.
    """
    every: dict[int, _Cached] = {}

    def cached_of(spec: Any) -> _Cached:
        key = id(spec)
        cached = every.get(key)
        if cached is None or cached.spec() is not spec:
            cached = every[key] = _Cached(weakref.ref(spec, lambda _: every.pop(key, None)))
        return cached

    def derived(member: Member, /, *args: Rest.args, **kwargs: Rest.kwargs) -> Value:
        values, key = cached_of(member.spec).values, (member.metadata.name, args, *kwargs.items())
        if key in values:
            value: Value = values[key]
            return value
        value = derive(member, *args, **kwargs)
        if len(values) >= _MOST_OF_A_SPEC:
            values.clear()
        values[key] = value
        return value

    return derived
