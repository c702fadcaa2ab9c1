"""What a server and a status say while a version is released, sampled as often as they change."""

import re
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from e2e.cluster.background import Background
from e2e.parts.up import Up

from argosy_runtime.modelconfig.parameters.traffic import MILLIONTHS

_WEIGHT = re.compile(r'^argosy_version_weight\{model="(\w+)",version="(\d+)"\} (\S+)$', re.M)
_SENT = re.compile(r'^argosy_version_requests_total\{model="(\w+)",version="(\d+)",by="weight"\} (\S+)$', re.M)
SHORTEST_S = 0.05


@dataclass(frozen=True, slots=True)
class Sample:
    """The weights of a model's versions on the server, in millionths, and how many requests each was sent by weight."""

    weights: tuple[tuple[int, int], ...]
    sent: dict[int, int]


@dataclass(frozen=True, slots=True)
class Divided:
    """How many requests each version was sent while the weights, in millionths, were the same."""

    weights: dict[int, int]
    sent: dict[int, int]

    @property
    def total(self) -> int:
        """All of them."""
        return sum(self.sent.values())

    def off(self, version: int) -> float:
        """Return by how many requests a version is off its exact share."""
        return abs(self.sent.get(version, 0) - self.weights.get(version, 0) * self.total / MILLIONTHS)


@dataclass
class Watch(Background):
    """Samples the metrics and the status of a model while its block runs. `ready` are the statuses and reasons of the
    condition Ready in order, each named once in a row; so are the `phases`.
    """

    up: Up
    name: str = "work"
    samples: list[Sample] = field(default_factory=list)
    phases: list[str] = field(default_factory=list)
    ready: list[tuple[str, str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(self._run)

    @property
    def divided(self) -> list[Divided]:
        """What the server divided, by weights that did not change meanwhile, in order."""
        return [divided for divided in self._divided() if divided.total]

    def met(self, version: int) -> int:
        """Return how many requests a version was sent by weight; the counters go with a version that is unloaded."""
        return max((sample.sent.get(version, 0) for sample in self.samples), default=0)

    def _divided(self) -> Iterator[Divided]:
        for weights, group in groupby(self.samples, lambda sample: sample.weights):
            first, *others = group
            last = others[-1] if others else first
            sent = {version: count - first.sent.get(version, 0) for version, count in last.sent.items()}
            yield Divided(dict(weights), sent)

    def _run(self) -> None:
        while not self.stopping.is_set():
            self._look()
            self.stopping.wait(SHORTEST_S)
        self._look()

    def _look(self) -> None:
        status = self.up.status(self.name)
        _add(self.phases, status.get("rollout", {}).get("phase"))
        _add(self.ready, _ready(status))
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.up.metrics}/metrics", timeout=5) as answer:
                text = answer.read().decode()
        except OSError:  # the server is being restarted
            return
        weights = {
            int(version): round(float(w) * MILLIONTHS) for name, version, w in _WEIGHT.findall(text) if self._is(name)
        }
        sent = {int(version): round(float(count)) for name, version, count in _SENT.findall(text) if self._is(name)}
        if weights:
            self.samples.append(Sample(tuple(sorted(weights.items())), sent))

    def _is(self, name: str) -> bool:
        return name == self.name


def _ready(status: dict[str, Any]) -> tuple[str, str, str] | None:
    conditions = {condition["type"]: condition for condition in status.get("conditions", ())}
    ready = conditions.get("Ready")
    return (ready["status"], ready.get("reason", ""), ready.get("message", "")) if ready else None


def _add(entries: list[Any], entry: Any) -> None:
    if entry is not None and (not entries or entries[-1] != entry):
        entries.append(entry)


def exactly_divided(watch: Watch) -> None:
    """Assert that every version got what its weight says, within one request, for as long as weights stayed."""
    for divided in watch.divided:
        for version in divided.weights:
            assert divided.off(version) <= 1, f"version {version}: {divided}"


def no_more_than_divided(watch: Watch, version: int) -> None:
    """Assert that a version got no more than what its weight says; while it is restarted it gets less."""
    for divided in watch.divided:
        share = divided.weights.get(version, 0) * divided.total / MILLIONTHS
        assert divided.sent.get(version, 0) <= share + 1, f"version {version}: {divided}"


def became_ready_once(watch: Watch) -> None:
    """Assert that Ready became True at the end, and was not False again after that."""
    statuses = [status for status, _ in groupby(status for status, _, _ in watch.ready)]
    assert statuses in (["True", "False", "True"], ["False", "True"]), watch.ready
