"""Versions that are released one after the other by `argosy up` under an open-loop load: what clients met of them."""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import numpy as np
from e2e.parts.up import REQUEST, Up
from e2e.parts.versioned import NAME, VersionedModel

STEP = 0.1
"""The traffic of the first step, the one that a bad version meets."""
RATE = 100.0
"""Requests a second."""
PATIENCE_S = 120.0
ROLLOUT = f"""{{
    steps: [{{traffic: {STEP:.0%}, pause: 1s}}, {{traffic: 50%, pause: 1s}}],
    analysis: {{warmUp: 0s, errorRate: {{acceptable: 1%, unacceptable: 20%}}, latency: {{p50: 20}}}}}}
"""
FAILING = 0.5
"""The share of its requests that a bad version fails."""
FAIL = f"""
if random.random() < {FAILING}:
    return pb_utils.InferenceResponse(error=pb_utils.TritonError(f"version {{self._version[0]}} fails"))
"""


@dataclass
class Answers:
    """What a load was answered: the second, and the version; of a failed request the version is negative, 0 if no
    version failed it.
    """

    begun: float = field(default_factory=time.monotonic)
    seen: list[tuple[float, int]] = field(default_factory=list)

    def add(self, version: int) -> None:
        """Add an answer that comes now."""
        self.seen.append((time.monotonic() - self.begun, version))

    def last(self, version: int) -> float:
        """Return when a version answered last, or failed a request; 0.0 if it never did."""
        return max((at for at, answered in self.seen if abs(answered) == version), default=0.0)

    def share(self, version: int) -> float:
        """Return a version's share of the answers after its first until its last."""
        times = [at for at, answered in self.seen if abs(answered) == version]
        if len(times) < 2:
            return 0.0
        meanwhile = sum(times[0] < at <= times[-1] for at, _ in self.seen)
        return (len(times) - 1) / meanwhile


class Release:
    """Versions that are declared one after the other on a started `argosy up`."""

    def __init__(self, up: Up) -> None:
        self.up, self._model, self._version = up, VersionedModel(up, ROLLOUT), 0

    def declare(self, answer: str = "pass") -> int:
        """Declare the next version, as a commit does, and return it. `answer` runs before each of its answers."""
        self._version += 1
        self._model.declare(self._version, answer=answer)
        return self._version

    @property
    def rollout(self) -> dict[str, Any]:
        """The rollout in the status."""
        return self._model.rollout

    async def until(self, version: int, *phases: str) -> str:
        """Wait until the rollout of a version has one of these phases, and return it. Phase and version are of one
        status: the next one may be of another version.
        """
        end = time.monotonic() + PATIENCE_S
        while (rollout := self.rollout).get("phase") not in phases or self._newest(rollout) != version:
            if time.monotonic() > end:
                raise TimeoutError(f"version {version}: {rollout}")
            await asyncio.sleep(0.02)
        return str(rollout["phase"])

    @staticmethod
    def _newest(rollout: dict[str, Any]) -> int:
        """Return the version that a rollout is, or was, about."""
        held = [one["version"] for one in rollout.get("held", ())]
        versions = (rollout.get(part, {}).get("version", 0) for part in ("candidate", "stable"))
        return max((*held, *versions), default=0)


@contextmanager
def released() -> Iterator[Release]:
    """Yield a started `argosy up` on which version 1 serves."""
    with tempfile.TemporaryDirectory(prefix="argosy-rollout-") as folder:
        release = Release(Up(Path(folder)))
        release.declare()
        release.up.start()
        try:
            release.up.until("version 1", lambda: release.rollout.get("phase") == "Stable")
            yield release
        finally:
            release.up.stop()


@asynccontextmanager
async def loaded(up: Up) -> AsyncIterator[Answers]:
    """Send requests at a constant rate while the block runs, answered or not. Yield their answers."""
    answers, limits = Answers(), httpx.Limits(max_connections=64)
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{up.http}", limits=limits, timeout=30) as client:
        sending = asyncio.create_task(_send_all(client, answers))
        try:
            yield answers
        finally:
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)


async def _send_all(client: httpx.AsyncClient, answers: Answers) -> None:
    async with asyncio.TaskGroup() as requests:
        for number in range(1_000_000):
            await asyncio.sleep(max(0.0, answers.begun + number / RATE - time.monotonic()))
            requests.create_task(_send(client, answers))


async def _send(client: httpx.AsyncClient, answers: Answers) -> None:
    try:
        answer = await client.post(f"/v2/models/{NAME}/infer", content=REQUEST)
    except httpx.HTTPError:
        answers.add(0)
        return
    if answer.is_success:
        answers.add(answer.json()["outputs"][0]["data"][0])
        return
    words = answer.json().get("error", "").split()
    answers.add(-int(words[1]) if words[:1] == ["version"] else 0)


async def good_bumps(release: Release, count: int) -> dict[str, Any]:
    """Release good versions one after the other. Return how many requests failed, and how many reached an old version
    after its end.
    """
    async with loaded(release.up) as answers:
        overdue = 0
        for _ in range(count):
            version = release.declare()
            if await release.until(version, "Promoted", "Held") != "Promoted":
                raise RuntimeError(f"good version {version} was taken back: {release.rollout}")
            promoted = time.monotonic() - answers.begun
            await asyncio.sleep(1.0)
            overdue += sum(at > promoted + 0.5 and seen != version for at, seen in answers.seen)
    failed = sum(seen <= 0 for _, seen in answers.seen)
    return {"bumps": count, "requests": len(answers.seen), "failed_requests": failed, "late_requests": overdue}


async def bad_bumps(release: Release, count: int) -> dict[str, Any]:
    """Release bad versions one after the other. Return the seconds from the verdict to the last request that a bad
    version got, and the largest share of the requests that one got.
    """
    backs: list[float] = []
    shares: list[float] = []
    for _ in range(count):
        async with loaded(release.up) as answers:
            version = release.declare(FAIL)
            if await release.until(version, "RollingBack", "Held", "Promoted") == "Promoted":
                raise RuntimeError(f"bad version {version} was promoted: {release.rollout}")
            verdict = time.monotonic() - answers.begun
            await release.until(version, "Held")
            await asyncio.sleep(1.5)
        backs.append(max(0.0, answers.last(version) - verdict))
        shares.append(answers.share(version))
    return {"bad_bumps": count, **_summary(backs, shares)}


def _summary(backs: Sequence[float], shares: Sequence[float]) -> dict[str, float]:
    return {
        "back_p99_s": round(float(np.percentile(backs, 99)), 3),
        "back_p50_s": round(float(np.median(backs)), 3),
        "bad_requests_share": round(max(shares), 4),
        "step_share": STEP,
    }


async def measured(good: int, bad: int) -> dict[str, Any]:
    """Return what clients met of so many good and bad versions."""
    with released() as release:
        return {**await good_bumps(release, good), **await bad_bumps(release, bad)}
