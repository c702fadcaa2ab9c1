"""Ensembles within ensembles: their order, their dependents, and cycles.

Everything here takes `steps`: the models that each ensemble runs, by the ensemble's name.
"""

from collections.abc import Collection, Mapping

from .graph import waves

Steps = Mapping[str, Collection[str]]


def inner_first(steps: Steps) -> list[str]:
    """Return the ensembles, each after those that it runs. Ensembles in a cycle, and those that run them, come last."""
    ordered = [
        name
        for wave in waves(steps, lambda name: steps.keys() & set(steps[name]), lambda name: frozenset({name}), ())
        for name in wave
    ]
    return [*ordered, *(name for name in steps if name not in set(ordered))]


def dependents(steps: Steps, model: str) -> list[str]:
    """Return the ensembles that run a model, directly or through others, inner ones first."""
    users: dict[str, list[str]] = {}
    for name, models in steps.items():
        for step in models:
            users.setdefault(step, []).append(name)
    users_of_model: set[str] = set()
    waiting = [model]
    while waiting:
        for user in users.get(waiting.pop(), ()):
            if user not in users_of_model:
                users_of_model.add(user)
                waiting.append(user)
    return inner_first({name: steps[name] for name in steps if name in users_of_model})


def circle(name: str, steps: Steps) -> str | None:
    """Return the error of an ensemble that runs itself through others, in Triton's words; None where it does not."""
    seen, waiting = {name}, [name]
    while waiting:
        current = waiting.pop()
        for model in sorted(steps.get(current, ())):
            if model == name:
                return f"circular dependency between ensembles: {name} -> ... -> {current} -> {name}"
            if model not in seen:
                seen.add(model)
                waiting.append(model)
    return None
