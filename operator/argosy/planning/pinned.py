"""Revisions of ensembles: a spec, and the version of each of its steps.

An ensemble is released as one unit. Its revision changes with its own spec and with the version of any step, of inner
ensembles too. A server loads a revision whole, next to the former one, and a request runs the versions of one revision
only. The operator numbers revisions, so that `spec.version` need not be raised when a step changes: a revision has
`spec.version` where that is above every version in use, else the next number.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Self

from argosy.api.ensemble import Ensemble, EnsembleSpec
from argosy.api.values.identity import Identity
from argosy.planning.cycles import find_cycle


class PinnedEnsemble(Ensemble):
    """One revision of an ensemble. `spec.version` is the revision's number, and every step names its version."""

    @classmethod
    def of(cls, ensemble: Ensemble, version: int, pins: Mapping[str, int]) -> Self:
        """Return the revision of an ensemble that runs these versions of its steps' models. Equal arguments give the
        same spec object, by which rendered texts are cached.
        """
        spec = _pinned(_Spec(ensemble.spec), version, tuple(sorted(pins.items())))
        return cls.model_construct(metadata=ensemble.metadata, spec=spec, status=ensemble.status)

    @classmethod
    def restored(cls, ensemble: Ensemble) -> Ensemble:
        """Return a stored revision as one. An ensemble with a step that names no version is returned as it is."""
        if isinstance(ensemble, cls) or any(step.version is None for step in ensemble.spec.steps):
            return ensemble
        return cls.model_construct(metadata=ensemble.metadata, spec=ensemble.spec, status=ensemble.status)

    @cached_property
    def identity(self) -> Identity:
        """The identity of the ensemble that it is a revision of."""
        return Identity.of("Ensemble", self.namespace, self.name)

    @property
    def pins(self) -> dict[str, int]:
        """The version of each step's model."""
        return {step.model: step.version for step in self.spec.steps if step.version is not None}


@dataclass(frozen=True, slots=True, eq=False)
class _Spec:
    """A cache key: two are the same that have one spec object, which is frozen."""

    spec: EnsembleSpec

    def __hash__(self) -> int:
        return hash(id(self.spec))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Spec) and self.spec is other.spec


@lru_cache(maxsize=1024)
def _pinned(key: _Spec, version: int, pins: tuple[tuple[str, int], ...]) -> EnsembleSpec:
    versions = dict(pins)
    steps = tuple(step.model_copy(update={"version": versions[step.model]}) for step in key.spec.steps)
    return key.spec.model_copy(update={"version": version, "steps": steps})


def pins_of_steps(
    ensemble: Ensemble, current: Mapping[str, int], numbered: Collection[str] = ()
) -> dict[str, int] | None:
    """Return the version of each step's model; None where a step has none.

    That is the version that the step names, else the `current` one. A `numbered` inner ensemble has its current one in
    any case: its `spec.version`, which a step may name, is not the number of its revision.
    """
    pins: dict[str, int] = {}
    for step in ensemble.spec.steps:
        version = current.get(step.model)
        if step.version is not None and step.model not in numbered:
            version = step.version
        if version is None:
            return None
        pins[step.model] = version
    return pins


def numbered_ensembles(ensembles: Mapping[str, Ensemble], released: Iterable[str]) -> tuple[str, ...]:
    """Return the ensembles whose revisions the operator numbers, inner ones first; none where some run each other.

    These are those of `released`, whose revisions are released in steps, and all that they run or that run them: an
    inner ensemble has to exist in two revisions while two revisions of an outer one do.
    """
    inner = {
        name: tuple(step.model for step in ensemble.spec.steps if step.model in ensembles)
        for name, ensemble in ensembles.items()
    }
    if find_cycle(inner):
        return ()
    numbered = set(released) & ensembles.keys()
    while more := _neighbors(numbered, inner) - numbered:
        numbered |= more
    ordered: dict[str, None] = {}
    for name in sorted(numbered):
        _inner_first(name, inner, ordered)
    return tuple(ordered)


def _neighbors(names: Collection[str], inner: Mapping[str, Collection[str]]) -> set[str]:
    """Return the ensembles that these run, and those that run one of these."""
    run = {step for name in names for step in inner[name]}
    return run | {name for name, steps in inner.items() if not set(names).isdisjoint(steps)}


def _inner_first(name: str, inner: Mapping[str, Iterable[str]], ordered: dict[str, None]) -> None:
    for step in inner[name]:
        _inner_first(step, inner, ordered)
    ordered.setdefault(name)


def revision_number(name: str, declared: int, numbers: Mapping[str, int], taken: Collection[int] = ()) -> int:
    """Return the version of an ensemble's revision of this name.

    One that is among the `numbers` of revisions keeps its own. A new one has the `declared` version where that is above
    all of them and all that are `taken`, else the next one: no two revisions ever have one number on a server.
    """
    if name in numbers:
        return numbers[name]
    most = max([*numbers.values(), *taken], default=0)
    return declared if declared > most else most + 1
