"""The traces, each with a model whose service curve was measured, so that its busiest minutes take some replicas.

The data is split in two halves: `TUNE`, on which a rule or a constant may be chosen, and `JUDGE`, which only judges.
"""

import csv
import gzip
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from io import StringIO
from pathlib import Path

import numpy as np

from argosy.autoscaling.decision import Allocation
from argosy.autoscaling.policy import Bounds, Pace, Policy, Targets
from argosy.simulation import traces
from argosy.simulation.member import Workload
from argosy.simulation.servers.engine import EngineCurve
from argosy.simulation.service import ServiceCurve, interpolated
from argosy.simulation.tracefiles import invocations, read_trace
from argosy.simulation.traces import Trace

CURVES = Path(__file__).parent / "curves.json"
DATA = Path(__file__).resolve().parents[3] / "shared" / "data"
"""Azure Functions 2019 and Azure LLM inference 2023 (CC-BY 4.0), Mooncake's conversations (Apache-2.0), if present."""
RATE = 10.0
"""The most requests a second of one replica: curves keep their shape, and time is stretched to this."""
PEAK = 8
"""Replicas that the busiest minutes take."""
MOST = 24
_DRAWS = ((11, 30.0), (12, 60.0), (13, 120.0))
"""Each trace is drawn so many times: the seed, and the seconds that a new replica takes to start."""
_LATER_S = 1.7
"""A trace with seconds of its own begins so much later in each draw, so that scalers look at other moments."""
_CONSTANT = (1.1, 1.5, 1.9, 2.3, 2.9, 3.3, 3.9, 4.6)
"""Of `RATE`, each with the next seed, twice."""
_BUDGET = 3.0
"""How often the largest batch fits into the latency budget, alone on its device."""
_TIMES = 4
"""Times as many requests as Azure's functions have."""
_RUNNING = 16
_PROMPT, _OUTPUT, _LIKE = 1150.0, 210.0, 1.7
"""Tokens of Azure's conversations: the means, and the shape of a gamma distribution for what is generated."""
TUNE, JUDGE = "tune", "judge"


@dataclass(frozen=True)
class Case:
    """A workload and its policy: the same on every trace but for the SLO and the least replicas."""

    workload: Workload
    policy: Policy


def cases(half: str) -> dict[str, tuple[Case, ...]]:
    """Return the draws of each trace of a half, by the trace's name."""
    return {name: tuple(make(*draw) for draw in _DRAWS) for name, make in _makers(half)}


def case_of(trace: Trace, model: str, startup_s: float = 30.0) -> Case:
    """Return a case of any trace; `model` is a name in curves.json."""
    return _generated(_sized(trace, 11), startup_s) if model == "llm" else _batched(trace, model, startup_s)


def constant() -> tuple[Case, ...]:
    """Return loads that never change, at many rates, each drawn twice and for three models."""
    drawn = [traces.constant(RATE * share, 3600, seed) for seed, share in enumerate(2 * _CONSTANT, start=11)]
    return tuple(case_of(trace, model) for trace in drawn for model in ("embed", "safety", "llm"))


_Maker = Callable[[int, float], Case]


def _makers(half: str) -> Iterator[tuple[str, _Maker]]:
    yield from _seeded(half)
    functions = DATA / "azure_functions2019" / "500_480min_inv.csv.gz"
    if functions.exists():
        yield from _functions(half, gzip.decompress(functions.read_bytes()).decode())
    yield from _language_models(half)


def _seeded(half: str) -> Iterator[tuple[str, _Maker]]:
    peak = PEAK * RATE * 0.8
    if half == TUNE:
        yield "diurnal", lambda seed, startup: _batched(traces.diurnal(peak, 5400, seed), "embed", startup)
        yield "bursts", lambda seed, startup: _batched(traces.bursts(peak / 2, 5400, seed), "embed", startup, True)
    else:
        yield "flash_crowd", lambda seed, startup: _batched(_crowd(peak, seed), "safety", startup)
        yield "ramp", lambda seed, startup: _batched(traces.ramp(peak, 5400, seed), "safety", startup)


def _crowd(peak: float, seed: int) -> Trace:
    return traces.flash_crowd(peak / 10, seconds=5400, seed=seed)


def _functions(half: str, text: str) -> Iterator[tuple[str, _Maker]]:
    """Return every other function: those triggered by HTTP, by queues, and one that is idle for most of the time."""
    mine = _half(half, text)
    sporadic = "fd6f7f10" if half == TUNE else "6513d956"
    chosen = {"http": {"Trigger": "http"}, "queue": {"Trigger": "queue"}, "sporadic": {"HashFunction": sporadic}}
    models = {"http": "embed", "queue": "safety", "sporadic": "embed"}
    for name in chosen:
        trace_name = f"azure_functions_{name}_{half}"

        def make(seed: int, startup_s: float, name: str = name, trace: str = trace_name) -> Case:
            drawn = invocations(mine, trace, chosen[name], _TIMES, seed)
            return _batched(drawn, models[name], startup_s, to_zero=name == "sporadic")

        yield trace_name, make


def _half(half: str, text: str) -> str:
    header, *lines = csv.reader(StringIO(text))
    written = StringIO()
    csv.writer(written).writerows([header, *lines[half == TUNE :: 2]])
    return written.getvalue()


def _language_models(half: str) -> Iterator[tuple[str, _Maker]]:
    azure = DATA / "azure_llm2023"
    name, file = ("conversation", "conv") if half == TUNE else ("code", "code")
    path = azure / f"AzureLLMInferenceTrace_{file}.csv.gz"
    if path.exists():
        (trace,) = read_trace(gzip.decompress(path.read_bytes()).decode(), f"azure_llm_{name}").values()
        yield trace.name, _later(trace)
    mooncake = DATA / "mooncake" / "conversation_trace.jsonl.gz"
    if half == JUDGE and mooncake.exists():
        yield "mooncake_conversation", _later(_mooncake(gzip.decompress(mooncake.read_bytes()).decode()))


def _mooncake(text: str) -> Trace:
    lines = [json.loads(line) for line in text.splitlines()]
    times, prompts, outputs = (
        np.array([line[name] for line in lines], dtype=np.float64)
        for name in ("timestamp", "input_length", "output_length")
    )
    times = np.sort(times / 1000)
    return Trace("mooncake_conversation", float(times[-1]), times, prompts, outputs)


def _later(trace: Trace) -> _Maker:
    def make(seed: int, startup_s: float) -> Case:
        seconds = _LATER_S * (seed - _DRAWS[0][0])
        moved = replace(trace, seconds=trace.seconds + seconds, arrivals=trace.arrivals + seconds)
        return _generated(moved, startup_s)

    return make


def _sized(trace: Trace, seed: int) -> Trace:
    """Return the trace with about as many tokens as conversations have: prompts vary by as much as their mean."""
    if trace.prompts is not None and trace.prompts.mean() > 1:
        return trace
    random, count = np.random.default_rng(seed), len(trace.arrivals)
    prompts, outputs = random.exponential(_PROMPT, count), random.gamma(_LIKE, _OUTPUT / _LIKE, count)
    return replace(trace, prompts=np.ceil(prompts), outputs=np.ceil(outputs))


def _batched(trace: Trace, model: str, startup_s: float, to_zero: bool = False) -> Case:
    curve = batch_curve(model, busiest_minute(trace) / PEAK)
    workload = Workload(trace.name, trace, curve, _BUDGET * curve.seconds[-1], Allocation(1), startup_s=startup_s)
    bounds = Bounds(
        min_replicas=0 if to_zero else 1,
        max_replicas=MOST,
        max_instances=4,
        max_window_s=workload.budget_s / 4,
        max_batch=curve.max_batch,
    )
    return Case(workload, Policy(bounds, Targets(latency={"p99": workload.budget_s}), Pace(), startup_s))


def _generated(trace: Trace, startup_s: float) -> Case:
    """Return a case whose budget is that of the first token: twenty prompts of mean length."""
    assert trace.prompts is not None
    curve = engine_curve(trace, busiest_minute(trace) / PEAK)
    budget = 20 * float(trace.prompts.mean()) * curve.prompt_token_s + 2 * curve.step_s[-1]
    workload = Workload(trace.name, trace, curve, budget, Allocation(1), startup_s=startup_s)
    return Case(workload, Policy(Bounds(max_replicas=MOST), Targets(first_token={"p99": budget}), Pace(), startup_s))


def busiest_minute(trace: Trace) -> float:
    """Return requests a second in one of the busiest minutes: one in a hundred has more."""
    counts = np.bincount((trace.arrivals // 60).astype(int))
    # Of a trace that is idle for nearly all the time, the 99th percentile is 0.
    return float(np.percentile(counts, 99) or counts.max()) / 60


def batch_curve(model: str, rate: float, most_rows: int = 8) -> ServiceCurve:
    """Return a curve as measured, in its own time, so that one replica takes `rate` requests a second."""
    measured = json.loads(CURVES.read_text())["models"][model]
    points = [(int(rows), seconds) for rows, seconds in measured["seconds"].items() if int(rows) <= most_rows]
    curve = interpolated(points, tuple(measured["slowdown"]), measured["variation"])
    return replace(curve, seconds=tuple(float(second) * curve.throughput() / rate for second in curve.seconds))


def engine_curve(trace: Trace, rate: float) -> EngineCurve:
    """Return an engine's curve as measured, in its own time; beyond the sequences that were measured each one more
    takes as much as the last.
    """
    measured = json.loads(CURVES.read_text())["models"]["llm"]
    points = sorted((int(count), seconds) for count, seconds in measured["step_s"].items())
    (low, low_s), (high, high_s) = points[-2:]
    points.append((_RUNNING, high_s + (high_s - low_s) / (high - low) * (_RUNNING - high)))
    steps = interpolated(points, (1.0,), 0.0).seconds
    curve = EngineCurve(steps, measured["prompt_token_s"])
    assert trace.prompts is not None
    assert trace.outputs is not None
    factor = curve.throughput(float(trace.prompts.mean()), float(trace.outputs.mean())) / rate
    return EngineCurve(tuple(seconds * factor for seconds in steps), curve.prompt_token_s * factor)
