"""The crossovers of a model's variants from results, as the part of its manifest that a server-side apply adds."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from argosy.api.model.variants import Measurement, Variant
from argosy.api.model.variantspecs import SEPARATOR
from argosy.bench.results import Comparison, Crossover, Endpoint, Method, Results

_DIGITS = 2


@dataclass(frozen=True, slots=True)
class MeasuredVariant:
    """A variant of a model, and the name of the endpoint at which it was measured."""

    name: str
    endpoint: str


def measured_variants(endpoints: Sequence[Endpoint]) -> tuple[str, list[MeasuredVariant]]:
    """Return the model whose variants the endpoints served as `<model>--<variant>`, and the variants in their order.

    Raises ValueError where an endpoint served something else.
    """
    variants, models = [], []
    for endpoint in endpoints:
        model, separator, variant = endpoint.model.rpartition(SEPARATOR)
        if not (separator and model and variant):
            raise ValueError(
                f"{endpoint.name} is measured with model {endpoint.model!r}, which is no variant: name it with "
                f"--model {endpoint.name}=MODEL--VARIANT"
            )
        models.append(model)
        variants.append(MeasuredVariant(variant, endpoint.name))
    if len(set(models)) != 1 or len(variants) < 2:
        raise ValueError("crossovers are those of two or more variants of one model: name an endpoint for each")
    return models[0], variants


def crossover_patch(model: str, variants: Sequence[MeasuredVariant], results: Results) -> dict[str, Any]:
    """Return the manifest's part with each measured crossover, and when and on what it was measured.

    `variants`: in the order of the spec; two may be in either order. Raises ValueError where there is no crossover.
    """
    crossovers = _in_order(variants, results)
    names = {variant.endpoint: variant.name for variant in variants}
    entries = [_entry(names[crossover.below], crossover, results.method) for crossover in crossovers]
    for one, other in pairwise(entries):
        if (one.max_concurrency or 0) >= (other.max_concurrency or 0):
            raise ValueError(
                f"{other.name} is the better one up to {other.max_concurrency} in flight, and {one.name} before it up "
                f"to {one.max_concurrency}: {other.name} is best nowhere; leave it out of the variants"
            )
    written = [entry.model_dump(mode="json", by_alias=True, exclude_none=True) for entry in entries]
    return {
        "apiVersion": "argosy.dev/v1alpha1",
        "kind": "InferenceModel",
        "metadata": {"name": model},
        "spec": {"variants": written},
    }


def _in_order(variants: Sequence[MeasuredVariant], results: Results) -> list[Crossover]:
    """Return the crossover of each variant and the next one."""
    overall = results.crossover
    if overall is not None and sorted(_endpoints(variants)) == sorted((overall.below, overall.above)):
        return [overall]
    pairs = {frozenset(pair.endpoints): pair for pair in results.comparisons}
    return [_between(one, other, pairs.get(frozenset((one, other)))) for one, other in pairwise(_endpoints(variants))]


def _endpoints(variants: Sequence[MeasuredVariant]) -> list[str]:
    return [variant.endpoint for variant in variants]


def _between(one: str, other: str, compared: Comparison | None) -> Crossover:
    if compared is None:
        raise ValueError(f"{one} and {other} are not compared: see the reasons of the document's field refused")
    crossover = compared.crossover
    if crossover is None:
        raise ValueError(f"{one} and {other} have no crossover: {compared.verdict}")
    if crossover.below != one:
        raise ValueError(f"{compared.verdict}: name {other} before {one}")
    return crossover


def _entry(name: str, crossover: Crossover, method: Method) -> Variant:
    if method.time is None or method.hardware is None:
        missing = "time" if method.time is None else "hardware"
        raise ValueError(f"the document's method has no {missing}: measure again with --hardware")
    concurrency = round(crossover.concurrency, _DIGITS)
    measurement = Measurement(
        time=method.time,
        hardware=method.hardware,
        concurrency=concurrency,
        low=None if crossover.low is None else round(crossover.low, _DIGITS),
        high=None if crossover.high is None else round(crossover.high, _DIGITS),
        prompt_tokens=method.prompt_tokens,
        output_tokens=method.output_tokens,
    )
    return Variant(name=name, max_concurrency=int(concurrency), measurement=measurement)
