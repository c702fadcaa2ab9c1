"""Which decoupled step an answer stems from. A decoupled step answers any number of times, and whatever depends on it
runs once for each of its answers: it is that step's *stream*.
"""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from .graph import EnsembleGraph, EnsembleStep


@dataclass(frozen=True, slots=True)
class Lineage:
    """The streams of an ensemble, each named by the index of the decoupled step that makes it; None is the request.

    `streams` has the innermost stream that each step that can run depends on, `output` that of the outputs. `mixed` are
    the steps whose inputs, and None where it is the outputs, come of two streams of which neither stems from the other:
    their answers cannot be paired.
    """

    streams: Mapping[int, int | None]
    output: int | None
    mixed: tuple[EnsembleStep | None, ...]

    @classmethod
    def of(cls, graph: EnsembleGraph, is_decoupled: Callable[[EnsembleStep], bool]) -> "Lineage":
        """Follow the tensors through the graph; steps that can never run are left out."""
        lines: dict[int | None, tuple[int | None, ...]] = {None: (None,)}
        stream_of: dict[str, int | None] = dict.fromkeys(graph.inputs)
        streams: dict[int, int | None] = {}
        mixed: list[EnsembleStep | None] = []

        def innermost(reader: EnsembleStep | None, tensors: Collection[str]) -> int | None:
            sources = {stream_of[tensor] for tensor in tensors if tensor in stream_of}
            stream = max(sources, default=None, key=lambda source: len(lines[source]))
            if not sources <= set(lines[stream]):
                mixed.append(reader)
            return stream

        for step in (step for wave in graph.waves() for step in wave):
            stream = streams[step.index] = innermost(step, step.consumes)
            if is_decoupled(step):
                lines[step.index] = (step.index, *lines[stream])
                stream = step.index
            stream_of.update(dict.fromkeys(step.produces, stream))
        return cls(streams, innermost(None, graph.outputs), tuple(mixed))
