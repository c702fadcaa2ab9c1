"""Traces of requests from files: every trace, and every error, at once."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from argosy.local.manifests.reading import unreadable
from argosy.simulation.tracefiles import TraceError, read_trace
from argosy.simulation.traces import Trace


def read_traces(files: Sequence[Path]) -> tuple[dict[str, Trace], list[str]]:
    """Return traces by model, and errors. Of several files, one without a column `model` is named after its model;
    the model of a single one is "", and the trace is named after the file.
    """
    traces: dict[str, Trace] = {}
    sources: dict[str, Path] = {}
    problems = []
    for file in files:
        try:
            for model, trace in read_trace(file.read_text(encoding="utf-8-sig"), str(file)).items():
                name = model or (file.stem if len(files) > 1 else "")
                if name in traces:
                    problems.append(f"{file}: has requests for {name}, as {sources[name]} has; put them into one file")
                traces[name], sources[name] = replace(trace, name=name or file.stem), file
        except (OSError, UnicodeDecodeError) as error:
            problems.append(f"{file}: {unreadable(error)}")
        except TraceError as error:
            problems.append(str(error))
    return traces, problems
