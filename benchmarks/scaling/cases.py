"""The traces, each with a model whose service curve was measured, so that its peak takes about eight replicas."""

import gzip
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
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
"""Real traces: Azure Functions 2019 and Azure LLM inference 2023 (CC-BY 4.0), where they are there."""
RATE = 10.0
"""Requests a second that one replica takes at most: curves keep their shape, and time is stretched to this."""
PEAK = 8
MOST = 24
STARTUP_S = 30.0
_SEEDS = (11, 12, 13)
"""A trace is drawn so many times: one draw tells as much of chance as of a scaler."""
_LATER_S = (0.0, 1.7, 3.4)
"""What has its own seconds begins so much later instead: scalers look at it at other moments then."""
_CONSTANT = (1.1, 1.5, 1.9, 2.3, 2.9, 3.3, 3.9, 4.6)
"""Of `RATE`, each with the next seed, twice."""
_BUDGET = 3.0
"""How often the largest batch fits into the latency budget, alone on its device."""
_TIMES = 4
_RUNNING = 16
_PROMPT, _OUTPUT, _LIKE = 1150.0, 210.0, 1.7
"""Tokens of Azure's conversations: the means, and the shape of a gamma distribution for what is generated."""


@dataclass(frozen=True)
class Case:
    """A workload and the policy for it: the same on every trace but for the SLO and the least replicas."""

    workload: Workload
    policy: Policy

    @property
    def name(self) -> str:
        """The trace's."""
        return self.workload.trace.name

    @property
    def throughput(self) -> float:
        """The most requests a second of one replica."""
        curve, trace = self.workload.curve, self.workload.trace
        if isinstance(curve, ServiceCurve):
            return curve.throughput()
        assert trace.prompts is not None
        assert trace.outputs is not None
        return curve.throughput(float(trace.prompts.mean()), float(trace.outputs.mean()))


def cases() -> dict[str, tuple[Case, ...]]:
    """All that there is data for: each trace by its name, with its draws."""
    found: dict[str, tuple[Case, ...]] = {}
    for case in (*_seeded(), *_functions(), *_language_models()):
        found[case.name] = (*found.get(case.name, ()), case)
    return found


def constant() -> tuple[Case, ...]:
    """Loads that never change, at many rates and drawn more often than the others, each draw for three models."""
    drawn = [traces.constant(RATE * share, 3600, seed) for seed, share in enumerate(2 * _CONSTANT, start=11)]
    batched = [_batched(trace, model) for trace in drawn for model in ("embed", "safety")]
    return (*batched, *(_generated(_sized(trace, seed)) for seed, trace in enumerate(drawn)))


def _seeded() -> Iterator[Case]:
    peak = PEAK * RATE * 0.8
    for seed in _SEEDS:
        yield _batched(traces.diurnal(peak, 5400, seed), "embed")
        yield _batched(traces.flash_crowd(peak / 10, seconds=5400, seed=seed), "safety")
        yield _batched(traces.bursts(peak / 2, 5400, seed), "embed", to_zero=True)
        yield _batched(traces.ramp(peak, 5400, seed), "safety")


def _functions() -> Iterator[Case]:
    """Of Azure's Functions all that HTTP triggers, and one that is idle for most of the time; four times as many. Of
    requests the minute is known, in which they are drawn.
    """
    file = DATA / "azure_functions2019" / "500_480min_inv.csv.gz"
    if file.exists():
        text = gzip.decompress(file.read_bytes()).decode()
        for seed in _SEEDS:
            http = invocations(text, "azure_functions_http", {"Trigger": "http"}, _TIMES, seed)
            yield _batched(http, "embed")
            sporadic = invocations(text, "azure_function_sporadic", {"HashFunction": "fd6f7f10"}, _TIMES, seed)
            yield _batched(sporadic, "embed", to_zero=True)


def _language_models() -> Iterator[Case]:
    for name, file in (("code", "AzureLLMInferenceTrace_code"), ("conversation", "AzureLLMInferenceTrace_conv")):
        path = DATA / "azure_llm2023" / f"{file}.csv.gz"
        if path.exists():
            (trace,) = read_trace(gzip.decompress(path.read_bytes()).decode(), f"azure_llm_{name}").values()
            yield from (_generated(_later(trace, seconds)) for seconds in _LATER_S)


def _sized(trace: Trace, seed: int) -> Trace:
    """With as many tokens as conversations have, about: prompts vary by as much as their mean."""
    random, count = np.random.default_rng(seed), len(trace.arrivals)
    prompts, outputs = random.exponential(_PROMPT, count), random.gamma(_LIKE, _OUTPUT / _LIKE, count)
    return replace(trace, prompts=np.ceil(prompts), outputs=np.ceil(outputs))


def _later(trace: Trace, seconds: float) -> Trace:
    return replace(trace, seconds=trace.seconds + seconds, arrivals=trace.arrivals + seconds)


def _batched(trace: Trace, model: str, to_zero: bool = False) -> Case:
    curve = batch_curve(model, busiest_minute(trace) / PEAK)
    workload = Workload(trace.name, trace, curve, _BUDGET * curve.seconds[-1], Allocation(1), startup_s=STARTUP_S)
    bounds = Bounds(
        min_replicas=0 if to_zero else 1,
        max_replicas=MOST,
        max_instances=4,
        max_window_s=workload.budget_s / 4,
        max_batch=curve.max_batch,
    )
    return Case(workload, Policy(bounds, Targets(latency={"p99": workload.budget_s}), Pace(), STARTUP_S))


def _generated(trace: Trace) -> Case:
    """The budget is that of the first token: twenty prompts of mean length."""
    assert trace.prompts is not None
    curve = engine_curve(trace, busiest_minute(trace) / PEAK)
    budget = 20 * float(trace.prompts.mean()) * curve.prompt_token_s + 2 * curve.step_s[-1]
    workload = Workload(trace.name, trace, curve, budget, Allocation(1), startup_s=STARTUP_S)
    bounds = Bounds(max_replicas=MOST)
    return Case(workload, Policy(bounds, Targets(first_token={"p99": budget}), Pace(), STARTUP_S))


def busiest_minute(trace: Trace) -> float:
    """Requests a second in one of the busiest minutes: one in a hundred has more."""
    counts = np.bincount((trace.arrivals // 60).astype(int))
    return float(np.percentile(counts, 99)) / 60


def batch_curve(model: str, rate: float, most_rows: int = 8) -> ServiceCurve:
    """As measured, in its own time."""
    found = json.loads(CURVES.read_text())["models"][model]
    points = [(int(rows), seconds) for rows, seconds in found["seconds"].items() if int(rows) <= most_rows]
    curve = interpolated(points, tuple(found["slowdown"]), found["variation"])
    return replace(curve, seconds=tuple(float(each) * curve.throughput() / rate for each in curve.seconds))


def engine_curve(trace: Trace, rate: float) -> EngineCurve:
    """As measured, in its own time; beyond the sequences that were measured each one more takes as much as the last."""
    found = json.loads(CURVES.read_text())["models"]["llm"]
    points = sorted((int(count), seconds) for count, seconds in found["step_s"].items())
    (low, low_s), (high, high_s) = points[-2:]
    points.append((_RUNNING, high_s + (high_s - low_s) / (high - low) * (_RUNNING - high)))
    steps = interpolated(points, (1.0,), 0.0).seconds
    curve = EngineCurve(steps, found["prompt_token_s"])
    assert trace.prompts is not None
    assert trace.outputs is not None
    factor = curve.throughput(float(trace.prompts.mean()), float(trace.outputs.mean())) / rate
    return EngineCurve(tuple(each * factor for each in steps), curve.prompt_token_s * factor)
