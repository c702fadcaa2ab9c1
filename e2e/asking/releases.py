"""Releases of a model or an ensemble under a constant rate of requests: declared, watched, and counted."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from e2e.asking.client import Client
from e2e.asking.metrics import sample
from e2e.asking.namespace import LOOK_S, Namespace
from e2e.asking.replies import Replies, Reply
from e2e.asking.watcher import Seen, watching
from e2e.declared.resources import Body

RELEASE_S = 180.0
RATE = 60.0
"""Requests per second."""
Rollout = dict[str, Any]


@dataclass(slots=True)
class Release:
    """What clients and the status said in the time of one release."""

    seen: Seen
    replies: Replies = field(default_factory=Replies)

    @property
    def rollouts(self) -> list[Rollout]:
        """Every state of `status.rollout`, in their order."""
        return [body["status"]["rollout"] for body in self.seen.bodies if "rollout" in body.get("status", {})]

    @property
    def timeline(self) -> list[tuple[float, str]]:
        """The changes of phase, step and what it waited for, with the seconds since the first request: for reports."""
        began = min(reply.sent for reply in self.replies.replies)
        changes: list[tuple[float, str]] = []
        for one in self.rollouts:
            words = f"{one['phase']} {one.get('step', 0)} {one.get('waiting', '')}".rstrip()
            if words not in [last for _, last in changes[-1:]]:
                changes.append((round(unix(one["observedAt"]) - began, 1), words))
        return changes

    def since(self, phase: str, version: int, step: int | None = None) -> float:
        """Return when a version entered a phase, or one of its steps, in Unix seconds, as the status has it."""
        return unix(next(one["since"] for one in self.rollouts if is_in(one, phase, version, step)))

    def convicted_at(self, version: int) -> float:
        """Return when it was decided to take a version back."""
        return unix(next(one["time"] for one in self.rollouts[-1]["history"] if one["version"] == version))

    def reached(self, version: int) -> set[tuple[str, int]]:
        """Return the phases, with the step, that a version was in as the candidate."""
        return {
            (one["phase"], one.get("step", 0))
            for one in self.rollouts
            if one.get("candidate", {}).get("version") == version
        }


class Releases:
    """A member whose revisions are released one after another. `declared` returns its resources with a version."""

    def __init__(
        self,
        namespace: Namespace,
        client: Client,
        resource: str,
        declared: Callable[..., list[Body]],
        rate: float = RATE,
    ) -> None:
        self.namespace, self.client, self.resource = namespace, client, resource
        self._declared, self.rate = declared, rate
        self.stable = 1

    def declare(self, version: int, **spec: Any) -> None:
        """Declare a version, as a commit in Git does."""
        self.namespace.apply(*self._declared(version, **spec))

    @property
    def rollout(self) -> Rollout:
        """The rollout in the status."""
        rollout: Rollout = self.namespace.status(self.resource).get("rollout", {})
        return rollout

    def until(self, phase: str, version: int, step: int | None = None, every_s: float = LOOK_S) -> None:
        """Wait until a version is in a phase, or in one of its steps."""

        def so() -> bool:
            return is_in(self.rollout, phase, version, step)

        self.namespace.until(f"{phase} of {version}", so, RELEASE_S, every_s)

    @contextmanager
    def under_load(self) -> Iterator[Release]:
        """Send requests while the block runs, and record every status."""
        kind, _, name = self.resource.partition("/")
        with watching(self.namespace.access, self.namespace.name, f"{kind}s", name) as seen:
            release = Release(seen)
            with self.client.open_load(self.resource, RELEASE_S, self.rate) as release.replies:
                yield release

    def promoted(self, version: int, **spec: Any) -> Release:
        """Declare a good version under load. Return the release once it has all requests."""
        with self.under_load() as release:
            self.declare(version, **spec)
            self.until("Promoted", version)
            self.namespace.ready(self.resource)
        self.stable = version
        return release

    def taken_back(self, version: int, **spec: Any) -> Release:
        """Declare a bad version under load. Return the release once it is held, and the stable one answers."""
        with self.under_load() as release:
            self.declare(version, **spec)
            self.until("Held", version)
            assert f"version {self.stable}" in self.namespace.says(self.resource, "Ready", "False", "RolledBack")
        return release

    def at_weight(self, pool: str, version: int, share: float) -> float:
        """Wait until each of the pool's servers divides requests so that a version gets this share. Return when."""
        name = self.resource.partition("/")[2]

        def applied() -> bool:
            pods = self.namespace.server_pods(pool)
            labels = {"model": name, "version": str(version)}
            return {sample(pod["status"]["podIP"], "argosy_version_weight", **labels) for pod in pods} == {share}

        self.namespace.until(f"{share:.0%} for version {version}", applied, RELEASE_S)
        return time.time()

    def history(self, version: int) -> Any:
        """Return the record of a version's last rollout."""
        return next(one for one in self.rollout["history"] if one["version"] == version)


def is_in(rollout: Rollout, phase: str, version: int, step: int | None = None) -> bool:
    """Return whether a rollout is in a phase, which is about a version, and at a step."""
    if rollout.get("phase") != phase or step not in (None, rollout.get("step")):
        return False
    if phase == "Held":
        return version in [held["version"] for held in rollout["held"]]
    part = "stable" if phase in ("Stable", "Promoted") else "candidate"
    return bool(rollout.get(part, {}).get("version") == version)


def unix(text: str) -> float:
    """Return a time of a status in Unix seconds."""
    return datetime.fromisoformat(text).timestamp()


def last_sent(replies: list[Reply]) -> float:
    """Return when the last of these requests was sent."""
    return max(reply.sent for reply in replies)
