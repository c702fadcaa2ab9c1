"""The document that `argosy bench -o json` writes, and `argosy bench --schema` describes. All times are seconds."""

from typing import Annotated, Any

import msgspec
from msgspec import Meta


class _Document(msgspec.Struct, rename="camel"):
    """A part of the document."""


class Percentiles(_Document):
    """Seconds."""

    mean: float
    p50: float
    p90: float
    p95: float
    p99: float


Number = Annotated[float, Meta(ge=0)]


class Method(_Document):
    """How it was measured."""

    api: Annotated[str, Meta(description="completions or chat")]
    prompt_tokens: Annotated[int, Meta(description="tokens of each prompt, by the usage that endpoints report")]
    output_tokens: Annotated[int, Meta(description="tokens of each answer, by usage")]
    requests: Annotated[int, Meta(description="measured requests of a trial, at least")]
    repetitions: Annotated[int, Meta(description="trials of an endpoint at a level")]
    seed: Annotated[int, Meta(description="seed of prompts and arrivals")]
    budget: Annotated[dict[str, float], Meta(description="limits in seconds: ttft, tpot, latency")]
    token_counts: Annotated[str, Meta(description="tokenizer or usage: what counted the tokens of words for prompts")]
    time: Annotated[str | None, Meta(description="when the measurement began, RFC 3339")] = None
    hardware: Annotated[str | None, Meta(description="what the endpoints run on, as --hardware names it")] = None


class Endpoint(_Document):
    """An endpoint under test."""

    name: str
    url: str
    model: str


class TrialResult(_Document):
    """One measurement of one endpoint, in the order in which they ran."""

    endpoint: str
    concurrency: Annotated[int | None, Meta(description="requests in flight; null in an open loop")]
    rate: Annotated[float | None, Meta(description="arrivals a second; null in a closed loop")]
    repetition: int
    started: Annotated[float, Meta(description="seconds since the first trial")]
    requests: Annotated[int, Meta(description="measured requests")]
    errors: Annotated[dict[str, int], Meta(description="incomplete answers by their reason, unmeasured ones included")]
    prompt_tokens: Annotated[int, Meta(description="of complete measured answers, by usage")]
    output_tokens: Annotated[int, Meta(description="of complete measured answers, by usage")]
    cached_tokens: Annotated[int, Meta(description="prompt tokens that a prefix cache had, by usage")]
    chunks_per_token: Number | None
    tokens_per_second: Annotated[float, Meta(description="output tokens while the load was constant")]
    requests_per_second: Number
    goodput: Annotated[float | None, Meta(description="requests a second within the budget; null without one")]
    time_to_first_token: Percentiles | None
    time_per_output_token: Annotated[Percentiles | None, Meta(description="per request, after its first token")]
    inter_token_latency: Annotated[Percentiles | None, Meta(description="between chunks, as a reader sees them")]
    latency: Annotated[Percentiles | None, Meta(description="until the answer was complete")]
    send_delay: Annotated[Percentiles | None, Meta(description="from the intended to the real sending")]
    sender_cpu: Annotated[float, Meta(description="share of one CPU that the sender used")]


class LevelResult(_Document):
    """All repetitions of one endpoint at one level: means of rates, percentiles over all measured requests."""

    endpoint: str
    concurrency: int | None
    rate: float | None
    requests: int
    errors: int
    tokens_per_second: Number
    requests_per_second: Number
    goodput: float | None
    within_budget: Annotated[float | None, Meta(description="share of measured requests within the budget")]
    time_to_first_token: Percentiles | None
    time_per_output_token: Percentiles | None
    inter_token_latency: Percentiles | None
    latency: Percentiles | None


class Ratio(_Document):
    """Tokens a second of the first endpoint of a comparison over those of the second, at one concurrency."""

    concurrency: int
    ratio: Number
    low: Annotated[float | None, Meta(description="95 % interval over repetitions; null with one repetition")]
    high: float | None
    better: Annotated[str | None, Meta(description="null where the interval includes 1")]


class Crossover(_Document):
    """Where the better endpoint changes: `below` is better at fewer requests in flight, `above` at more."""

    concurrency: Annotated[float, Meta(description="interpolated over the logarithm of the concurrency")]
    low: Annotated[float | None, Meta(description="95 % interval over repetitions; null with one repetition")]
    high: float | None
    below: str
    above: str
    between: Annotated[tuple[int, int], Meta(description="the two measured levels that it was interpolated between")]
    confidence: Annotated[float | None, Meta(description="share of resampled repetitions that cross so")]


class Comparison(_Document):
    """Two endpoints, compared by tokens a second in closed loops."""

    endpoints: tuple[str, str]
    ratios: list[Ratio]
    crossover: Crossover | None
    verdict: str


_OVERALL = (
    "of the endpoint that is best at the lowest concurrency and the one that is best at the highest; null if one "
    "dominates, or if no closed loop was measured"
)


class Results(_Document):
    """The document."""

    version: Annotated[int, Meta(description="of this document: 1")]
    method: Method
    endpoints: list[Endpoint]
    trials: list[TrialResult]
    levels: list[LevelResult]
    comparisons: list[Comparison]
    crossover: Annotated[Crossover | None, Meta(description=_OVERALL)]
    refused: Annotated[list[str], Meta(description="why endpoints, or levels of them, are not compared")]


def schema() -> dict[str, Any]:
    """Return the JSON Schema of the document."""
    return msgspec.json.schema(Results)


def document(results: Results) -> dict[str, Any]:
    """Return the document as plain values, floats rounded to six digits after the point."""
    return {name: _rounded(value) for name, value in msgspec.to_builtins(results).items()}


def _rounded(value: Any) -> Any:
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, dict):
        return {name: _rounded(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(item) for item in value]
    return value


def read_results(text: bytes | str) -> Results:
    """Return the document of a file. Raises ValueError with the path of what does not fit."""
    return msgspec.json.decode(text, type=Results)
