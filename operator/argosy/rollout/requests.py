"""Requests by annotations, each of which names a revision and is acted upon once."""

from dataclasses import replace

from argosy.rollout.state import Revision, RolloutInputs, RolloutState

REQUESTS = ("promote", "retry", "undo")
FURTHER = "@"
"""What follows it in an annotation's value tells one request from the next; of an undo also where to go back to."""


def revision_named(text: str) -> str:
    """Return the name of the revision that an annotation's value names; empty if it names none."""
    return text.partition(FURTHER)[0].strip()


def names(text: str, revision: Revision) -> bool:
    """Return whether an annotation's value names a revision."""
    return bool(text) and revision_named(text) == revision.name


def handled_entry(request: str, text: str) -> str:
    """Return a request as `RolloutState.handled` lists it. `text` is the annotation's value."""
    return f"{request}={text}"


def spent(state: RolloutState, inputs: RolloutInputs, revision: Revision, *requests: str) -> RolloutState:
    """Return the state with those of the requests handled that name a revision. They were made before its present
    rollout began or ended, so they do not act on the next one.
    """
    return handled(state, inputs, *(request for request in requests if names(getattr(inputs, request), revision)))


def handled(state: RolloutState, inputs: RolloutInputs, *requests: str) -> RolloutState:
    """Return the state with these requests handled, of `promote`, `retry` and `undo`; those no longer set are gone."""
    present = [handled_entry(name, getattr(inputs, name)) for name in REQUESTS if getattr(inputs, name)]
    done = {*state.handled, *(handled_entry(name, getattr(inputs, name)) for name in requests)}
    retained = tuple(request for request in present if request in done)
    return state if retained == state.handled else replace(state, handled=retained)
