"""The reports of backends that batch by themselves, token by token, as language models do."""

import msgspec


class HistogramCounts(msgspec.Struct, frozen=True, array_like=True):
    """What a histogram counted: by bucket, and the sum of all values (nanoseconds, or tokens)."""

    counts: list[int]
    total: int


class EngineTimes(msgspec.Struct, frozen=True, array_like=True):
    """What an engine has measured since its last report, as a `DurationHistogram` or a `TokenHistogram` each.

    Durations are `waited`, from the arrival of a request at the engine until it first ran; `first_token`, until its
    first token; `between_tokens`, from one token of a request to its next one; `answered`, from the arrival of a
    request to its last token. Of each answered request there are the tokens of its prompt, those of them that the
    prefix cache had (`cached_tokens`), and those generated for all its choices.
    """

    waited: HistogramCounts
    first_token: HistogramCounts
    between_tokens: HistogramCounts
    answered: HistogramCounts
    prompt_tokens: HistogramCounts
    cached_tokens: HistogramCounts
    generated_tokens: HistogramCounts


class AdapterState(msgspec.Struct, frozen=True, array_like=True):
    """LoRA adapters of an engine: names of those with running and with waiting requests, and how many fit at once."""

    running: list[str]
    waiting: list[str]
    at_once: int


class EngineState(msgspec.Struct, frozen=True, tag=True):
    """State of a backend that batches by itself, token by token. Reported now and then, never answered.

    `waiting` requests have joined and have no token yet, `running` ones are generated for; `cache` is the share (0
    to 1) in use, None where that is unknown. Totals since the instance was loaded are the tokens, of which
    `cached_tokens` are those of prompts that the prefix cache had (None without one), and `preemptions`: running
    requests that lost their cache to others. An engine that is `asleep` has its weights in the host's memory, and has
    to be woken before it generates. `times` are new since the last report, None where the engine measures none.
    `cache_tokens`: tokens that the cache holds, None where that is unknown.
    """

    waiting: int
    running: int
    cache: float | None
    prompt_tokens: int
    generated_tokens: int
    cached_tokens: int | None = None
    preemptions: int = 0
    asleep: bool = False
    adapters: AdapterState | None = None
    times: EngineTimes | None = None
    cache_tokens: int | None = None
