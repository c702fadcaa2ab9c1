"""Which variant suits a traffic, by measured results: requests in flight are their rate times their duration.

A variant suits that meets every objective at the rate; of several the one with the fewest requests in flight. If none
does, more servers are needed: of the variants that can meet the objectives, that which needs the fewest suits. Without
a rate, as for work offline, the variant suits that answers the most requests a second within the objectives.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil

from argosy.bench.results import Results
from argosy.bench.variants.crossovers import MeasuredVariant
from argosy.bench.variants.curves import Curve, Point, total_latency
from argosy.bench.variants.objectives import Objective

TOLERANCE = 1.25
"""Factor by which the lengths of prompts and answers may differ from the measured ones."""


@dataclass(frozen=True, slots=True)
class Traffic:
    """What is asked for: requests a second on all servers, None for as many as possible, and the objectives."""

    rate: float | None
    servers: int
    objectives: Sequence[Objective]


@dataclass(frozen=True, slots=True)
class Judgement:
    """One variant under a traffic. `most`: requests a second of a server within the objectives.

    `in_flight` on each server and `duration` in seconds are averages, None beyond the measured rates. `needs`: servers
    for the rate, None without a rate, or if no number of them meets the objectives.
    """

    variant: str
    most: float
    in_flight: float | None = None
    duration: float | None = None
    needs: int | None = None
    misses: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Advice:
    """`variant`: the one that suits; empty if none does. `reasons`: the arithmetic, a line for each variant."""

    variant: str
    conclusion: str
    reasons: Sequence[str]
    judgements: Sequence[Judgement]


def results_for(documents: Sequence[Results], prompt_tokens: int | None, output_tokens: int | None) -> Results:
    """Return the document whose lengths fit the requested ones. Raises ValueError with how to measure it."""
    fitting = [
        document
        for document in documents
        if _alike(prompt_tokens, document.method.prompt_tokens) and _alike(output_tokens, document.method.output_tokens)
    ]
    if len(fitting) == 1:
        return fitting[0]
    if fitting:
        raise ValueError("several results fit: name the lengths with --prompt-tokens and --output-tokens, or one file")
    lengths = ", ".join(f"{one.method.prompt_tokens} in and {one.method.output_tokens} out" for one in documents)
    options = [f"--prompt-tokens {prompt_tokens}"] if prompt_tokens else []
    options += [f"--output-tokens {output_tokens}"] if output_tokens else []
    raise ValueError(f"there are results for {lengths}: measure with argosy bench {' '.join(options)}")


def _alike(requested: int | None, measured: int) -> bool:
    return requested is None or 1 / TOLERANCE <= requested / measured <= TOLERANCE


def advice(traffic: Traffic, variants: Sequence[MeasuredVariant], results: Results) -> Advice:
    """Return which variant suits, with the arithmetic."""
    judgements = [judged(traffic, one.name, Curve.of(one.endpoint, results.levels)) for one in variants]
    reasons = [reason(traffic, judgement) for judgement in judgements]
    variant, conclusion = _chosen(traffic, judgements)
    names = {one.endpoint: one.name for one in variants}
    return Advice(variant, conclusion, [*reasons, *_crossovers(results, names)], judgements)


def judged(traffic: Traffic, variant: str, curve: Curve) -> Judgement:
    """Return what a variant does under a traffic."""
    most = curve.most(lambda point: not _misses(traffic.objectives, point))
    if traffic.rate is None:
        return Judgement(variant, most)
    rate = traffic.rate / traffic.servers
    needs = ceil(traffic.rate / most) if most else None
    point = curve.at(rate)
    duration = point.value(total_latency, "mean") if point is not None else None
    if point is None or duration is None:
        return Judgement(variant, most, needs=needs, misses=[f"no more than {curve.most():.3g}/s were measured"])
    return Judgement(variant, most, rate * duration, duration, needs, _misses(traffic.objectives, point))


def _misses(objectives: Sequence[Objective], point: Point) -> list[str]:
    return [miss for objective in objectives if (miss := objective.miss(point))]


def _chosen(traffic: Traffic, judgements: Sequence[Judgement]) -> tuple[str, str]:
    """Return the variant that suits, and why."""
    within = "within the objectives" if traffic.objectives else "at all"
    able = [one for one in judgements if one.most > 0]
    if not able:
        return "", "none suits: no variant meets the objectives at any measured level"
    if traffic.rate is None:
        best = max(able, key=lambda one: one.most)
        return best.variant, f"{best.variant} suits: it answers the most requests a second {within}, {best.most:.3g}/s"
    meeting = [one for one in judgements if one.in_flight is not None and not one.misses]
    if meeting:
        best = min(meeting, key=lambda one: one.in_flight or 0.0)
        which = "of those that meet the objectives" if traffic.objectives else "of all"
        return best.variant, f"{best.variant} suits: {which} it has the fewest in flight, {best.in_flight:.3g}"
    best = min(able, key=lambda one: (one.needs or 0, -one.most))
    return best.variant, (
        f"{best.variant} suits with {best.needs} servers, the fewest: {traffic.rate:g}/s / {best.most:.3g}/s, "
        f"rounded up; on {traffic.servers} none meets the objectives"
    )


def reason(traffic: Traffic, judgement: Judgement) -> str:
    """Return the arithmetic of one variant."""
    most = f"a server answers up to {judgement.most:.3g}/s" + (" within the objectives" if traffic.objectives else "")
    if traffic.rate is None:
        return f"{judgement.variant}: {most}"
    rate = traffic.rate / traffic.servers
    sharing = f" on each of {traffic.servers} servers" if traffic.servers > 1 else ""
    law = f"{rate:.3g}/s{sharing}"
    if judgement.in_flight is not None:
        law += f" x {judgement.duration:.3g} s = {judgement.in_flight:.3g} in flight"
    verdict = "; ".join(judgement.misses) or ("meets the objectives" if traffic.objectives else "within its rate")
    return f"{judgement.variant}: {law}: {verdict}; {most}"


def _crossovers(results: Results, names: dict[str, str]) -> Iterator[str]:
    for pair in results.comparisons:
        crossover = pair.crossover
        if crossover is not None and set(pair.endpoints) <= names.keys():
            yield (
                f"crossover: {names[crossover.below]} is better up to {crossover.concurrency:.3g} in flight on a "
                f"server, {names[crossover.above]} above"
            )
