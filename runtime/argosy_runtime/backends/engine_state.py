"""The reports of backends that batch by themselves, token by token, as language models do."""

import msgspec


class DurationCounts(msgspec.Struct, frozen=True, array_like=True):
    """Durations by buckets: `counts` as a `DurationHistogram` has them, and their sum in nanoseconds."""

    counts: list[int]
    ns: int


class FinishedRequest(msgspec.Struct, frozen=True, array_like=True):
    """A request that an engine has answered: seconds from its arrival there to its last token, and its tokens.

    Tokens of the prompt include `cached_tokens`, those that the prefix cache had; generated ones are of all choices.
    """

    seconds: float
    prompt_tokens: int
    generated_tokens: int
    cached_tokens: int = 0


class EngineTimes(msgspec.Struct, frozen=True, array_like=True):
    """What an engine has measured since its last report.

    `waited`: from the arrival of a request at the engine until it first ran; `first_token`: until its first token;
    `between_tokens`: from one token of a request to its next one.
    """

    waited: DurationCounts
    first_token: DurationCounts
    between_tokens: DurationCounts
    finished: list[FinishedRequest]


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
    requests that lost their cache to others. `sleep_level` is vLLM's: 0 awake, 1 asleep with the weights in the host's
    memory, 2 asleep without weights. `times` are new since the last report, None where the engine measures none.
    """

    waiting: int
    running: int
    cache: float | None
    prompt_tokens: int
    generated_tokens: int
    cached_tokens: int | None = None
    preemptions: int = 0
    sleep_level: int = 0
    adapters: AdapterState | None = None
    times: EngineTimes | None = None

    @property
    def asleep(self) -> bool:
        """Whether the engine sleeps, and has to be woken before it generates."""
        return self.sleep_level > 0
