"""What is new of a choice since its last response."""

import msgspec


class LogprobEntry(msgspec.Struct, frozen=True, omit_defaults=True):
    """A token that could stand at a position: its log probability, its rank (1 is the likeliest), its text and bytes.

    `decoded_token` of a token that holds part of a character only is not its bytes; `bytes` are. A log probability that
    is infinite is None once it was JSON.
    """

    logprob: float | None
    rank: int | None = None
    decoded_token: str | None = None
    bytes: list[int] | None = None


Position = dict[int, LogprobEntry]
"""The tokens that were looked at for one position, the chosen one first."""


class Delta(msgspec.Struct):
    """What is new of choice `index`. `finish_reason` is None while it goes on, then stop, length, abort or error.

    `stop_reason` is the stop string or the token at which it stopped. `cumulative_logprob` is the sum so far. With
    `logprobs` there is a position per new token.
    """

    index: int = 0
    text: str = ""
    token_ids: list[int] = []
    finish_reason: str | None = None
    stop_reason: str | int | None = None
    cumulative_logprob: float | None = None
    logprobs: list[Position] | None = None
