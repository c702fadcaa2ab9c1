"""Keepalive: when a client is sent a PING, and when its connection ends. Times are arguments."""

from dataclasses import dataclass
from enum import Enum
from typing import Final

NEVER: Final = float("inf")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeepAliveRules:
    """Seconds; infinite turns a rule off. The names and defaults are those of gRPC's keepalive and of tritonserver.

    `handshake`: until the client has sent its preface; `unfinished`: for the rest of a frame or header block that has
    begun; `idle`: without a request, before the client is sent away; `unread`: for a client that has stopped reading,
    and for one that makes no room for an answer; `closing`: for a client to read its last bytes.
    """

    time: float = 7200.0
    timeout: float = 20.0
    permit_without_calls: bool = False
    min_ping_interval: float = 300.0
    max_ping_strikes: int = 2
    handshake: float = 20.0
    unfinished: float = 120.0
    idle: float = 3600.0
    unread: float = 620.0
    max_age: float = NEVER
    max_age_grace: float = NEVER
    closing: float = 10.0


class Action(Enum):
    """What to do about a connection."""

    NOTHING = "nothing"
    PING = "ping"
    SEND_AWAY = "send away"
    GIVE_UP = "give up"
    CUT = "cut"


class KeepAlive:
    """One connection's timers. `check` returns the time of its next call."""

    __slots__ = (
        "_began",
        "_heard",
        "_left",
        "_pinged",
        "_rules",
        "_unfinished",
        "_unfinished_since",
        "_unread",
        "_unread_since",
    )

    def __init__(self, rules: KeepAliveRules, now: float) -> None:
        self._rules = rules
        self._began = now
        self._heard = now
        self._pinged = NEVER
        self._left = NEVER
        self._unfinished: tuple[int, int] | None = None
        self._unfinished_since = NEVER
        self._unread = 0
        self._unread_since = NEVER

    def heard(self, now: float) -> None:
        """Note that the client sent something, and so lives."""
        self._heard = now
        self._pinged = NEVER

    def reads(self, now: float, unread: int) -> None:
        """Note how many bytes the client has not read yet. Fewer than before are a sign of life.

        While it reads nothing, nothing is read of it either, so that it can give no other sign.
        """
        if unread < self._unread:
            self.heard(now)
        if unread < self._unread or self._unread_since == NEVER:
            self._unread_since = now
        if not unread:
            self._unread_since = NEVER
        self._unread = unread

    def check(self, now: float, greeted: bool, unfinished: tuple[int, int] | None, busy: bool) -> tuple[Action, float]:
        """Return what to do now, and the time at which to ask again.

        `greeted`: the client has begun; `unfinished`: which frame or header block it is sending; `busy`: it has open
        requests.
        """
        if unfinished != self._unfinished:
            self._unfinished = unfinished
            self._unfinished_since = NEVER if unfinished is None else now
        action = self._act(now, greeted, busy)
        return action, self._due(now, greeted, busy)

    def _act(self, now: float, greeted: bool, busy: bool) -> Action:
        if now >= self._unread_since + self._rules.unread:
            return Action.CUT
        if now >= self._ends(greeted):
            return Action.GIVE_UP
        if now >= self._leaves(busy):
            self._left = now
            return Action.SEND_AWAY
        if now >= self._pings(busy):
            self._pinged = now
            return Action.PING
        return Action.NOTHING

    def _ends(self, greeted: bool) -> float:
        """Return when the client is given up."""
        rules = self._rules
        return min(
            NEVER if greeted else self._began + rules.handshake,
            self._pinged + rules.timeout,
            self._unfinished_since + rules.unfinished,
            self._left + rules.max_age_grace,
        )

    def _leaves(self, busy: bool) -> float:
        """Return when the client is sent away."""
        if self._left != NEVER:
            return NEVER
        return min(NEVER if busy else self._heard + self._rules.idle, self._began + self._rules.max_age)

    def _pings(self, busy: bool) -> float:
        """Return the time of the next PING to the client."""
        due = self._pinged == NEVER and (busy or self._rules.permit_without_calls)
        return self._heard + self._rules.time if due else NEVER

    def _due(self, now: float, greeted: bool, busy: bool) -> float:
        # Whether the client has begun a frame or a request meanwhile is seen at the next check.
        rules = self._rules
        looks = now + min(rules.time, rules.idle, rules.unfinished, rules.unread) / 2
        return min(looks, self._unread_since + rules.unread, self._ends(greeted), self._leaves(busy), self._pings(busy))
