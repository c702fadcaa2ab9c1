"""Requests by annotations, each of which names a revision and is acted upon once."""

from dataclasses import replace

from argosy.rollout.state import Revision, RolloutInputs, RolloutState


def names(text: str, revision: Revision) -> bool:
    """Return whether an annotation's value names a revision. What follows `@` tells one request from the next."""
    return bool(text) and text.partition("@")[0].strip() == revision.name


def handled(state: RolloutState, inputs: RolloutInputs, *requests: str) -> RolloutState:
    """Return the state with these requests handled, of `promote`, `retry` and `undo`; those no longer set are gone."""
    present = [f"{name}={getattr(inputs, name)}" for name in ("promote", "retry", "undo") if getattr(inputs, name)]
    done = {*state.handled, *(f"{name}={getattr(inputs, name)}" for name in requests)}
    retained = tuple(request for request in present if request in done)
    return state if retained == state.handled else replace(state, handled=retained)
