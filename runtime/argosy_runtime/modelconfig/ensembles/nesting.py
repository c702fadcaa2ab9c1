"""Ensembles within ensembles: in which order they stand, who follows whom, who holds itself.

Everything here takes `steps`: the models that each ensemble runs, by the ensemble's name.
"""

from collections.abc import Collection, Iterator, Mapping

from .waves import waves

Steps = Mapping[str, Collection[str]]


def inner_first(steps: Steps) -> list[str]:
    """The ensembles, each behind those that it holds; those that hold themselves, or hold one that does, come last."""
    ordered = [
        name
        for wave in waves(steps, lambda name: steps.keys() & set(steps[name]), lambda name: frozenset({name}), ())
        for name in wave
    ]
    return [*ordered, *(name for name in steps if name not in set(ordered))]


def dependents(steps: Steps, model: str) -> list[str]:
    """The ensembles that run a model, directly or through others, inner ones first."""
    users: dict[str, list[str]] = {}
    for name, models in steps.items():
        for each in models:
            users.setdefault(each, []).append(name)
    found: set[str] = set()
    waiting = [model]
    while waiting:
        for user in users.get(waiting.pop(), ()):
            if user not in found:
                found.add(user)
                waiting.append(user)
    return inner_first({name: steps[name] for name in steps if name in found})


def circles(steps: Steps) -> Iterator[tuple[str, str]]:
    """Each ensemble that holds itself, by name, with the last one on the way from it back to itself."""
    for start in sorted(steps):
        last = _closing(start, steps)
        if last is not None:
            yield start, last


def _closing(start: str, steps: Steps) -> str | None:
    seen, waiting = {start}, [start]
    while waiting:
        current = waiting.pop()
        for model in sorted(steps.get(current, ())):
            if model == start:
                return current
            if model not in seen:
                seen.add(model)
                waiting.append(model)
    return None
