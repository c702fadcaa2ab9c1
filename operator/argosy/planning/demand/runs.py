"""Which models each ensemble runs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from argosy.api import Ensemble


def runs_of(ensembles: Iterable[Ensemble]) -> dict[str, tuple[str, ...]]:
    """Return the models that each ensemble runs, each once, in step order, those of its inner ensembles in their
    place.
    """
    steps = {ensemble.name: [step.model for step in ensemble.spec.steps] for ensemble in ensembles}
    return {name: tuple(dict.fromkeys(_models(name, steps, frozenset()))) for name in sorted(steps)}


def _models(name: str, steps: Mapping[str, Sequence[str]], above: frozenset[str]) -> Iterator[str]:
    if name not in steps:
        yield name
    elif name not in above:
        for step in steps[name]:
            yield from _models(step, steps, above | {name})
