"""The states of a rollout, from the transition table of its state machine."""

from collections.abc import Iterator, Sequence

from docs.reference.resources import NOTE

from argosy.rollout.machine import TRANSITIONS, Transition
from argosy.rollout.state import MEANINGS, PROVING, Phase, Waiting

_PROVING = "Proving"
_TITLE = "# States of a rollout\n\n"
_INTRODUCTION = """
A rollout is a state machine. A round of the operator takes at most one transition: of the rows of the present phase,
the first whose condition holds. [How a rollout is decided](../explanation/rollouts.md) explains it.

"""
_PHASES = """
`status.rollout.phase` is one of these. `Proving` in the diagram stands for those of them with a candidate that may
still be promoted.

| phase | meaning | candidate's traffic | loaded |
|---|---|---|---|
"""
_TRANSITIONS = """
## Transitions

| from | to | when |
|---|---|---|
"""
_WAITING = """
## Waiting

`status.rollout.waiting` says what a phase that lasts waits for. Anything else there is the reason of an obstacle or a
failure.

| word | meaning |
|---|---|
"""


def rollouts_page() -> str:
    """Return the page: the diagram, the phases, the transitions in their order, and what is waited for."""
    phases = "".join(
        f"| `{phase}` | {meaning.what} | {meaning.traffic} | {meaning.loaded} |\n"
        for phase, meaning in MEANINGS.items()
    )
    rows = "".join(f"| `{row.source}` | `{row.target}` | {row.when} |\n" for row in TRANSITIONS)
    waiting = "".join(f"| `{word}` | {word.meaning} |\n" for word in Waiting if word)
    note = NOTE.format(source="operator/argosy/rollout/machine.py")
    parts = (_TITLE, note, _INTRODUCTION, diagram(TRANSITIONS), _PHASES, phases, _TRANSITIONS, rows, _WAITING, waiting)
    return "".join(parts)


def diagram(transitions: Sequence[Transition]) -> str:
    """Return a state diagram for Mermaid. Transitions that all proving phases have are drawn once."""
    inner = "".join(f"        {edge}\n" for edge in _edges(transitions, inner=True))
    outer = "".join(f"    {edge}\n" for edge in _edges(transitions, inner=False))
    return f"```mermaid\nstateDiagram-v2\n    [*] --> Loading\n    state {_PROVING} {{\n{inner}    }}\n{outer}```\n"


def _edges(transitions: Sequence[Transition], inner: bool) -> Iterator[str]:
    """Yield the edges within the proving phases, or all others, in the order of the table."""
    shared = _shared(transitions)
    seen = set()
    for row in transitions:
        common = row.source in PROVING and (row.target, row.when) in shared
        source = _PROVING if common else row.source
        edge = f"{source} --> {row.target}: {row.when}"
        within = not common and row.source in PROVING and row.target in PROVING
        if within is inner and edge not in seen:
            seen.add(edge)
            yield edge


def _shared(transitions: Sequence[Transition]) -> set[tuple[Phase, str]]:
    """Return target and condition of the transitions that every proving phase has."""
    of_phase = {phase: {(row.target, row.when) for row in transitions if row.source is phase} for phase in PROVING}
    return set.intersection(*of_phase.values())
