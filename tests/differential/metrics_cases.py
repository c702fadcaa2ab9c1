"""Metrics of the two servers: which of Triton's there are, of which kind and with which labels; how counts move."""

import re
import time
import urllib.request

from tests.differential.http_calls import send
from tests.differential.statistics_cases import CASES, StatisticsCase, settled
from tests.peers.server import Server

COUNTS = (
    "nv_inference_request_success",
    "nv_inference_request_failure",
    "nv_inference_count",
    "nv_inference_exec_count",
)
PATIENCE_S = 10.0
_SAMPLE = re.compile(r"(?P<name>\w+)(?:\{(?P<labels>[^}]*)\})? (?P<value>\S+)")


def text(server: Server) -> str:
    """Return all of its metrics."""
    with urllib.request.urlopen(f"http://{server.metrics}/metrics", timeout=10) as answer:
        return str(answer.read().decode())


def families(server: Server) -> dict[str, list[str | list[str]]]:
    """Return, by name, the kind and the labels of samples. Families without samples are left out."""
    exposed = text(server)
    kinds = dict(re.findall(r"^# TYPE (nv_\w+) (\w+)$", exposed, re.MULTILINE))
    families: dict[str, list[str | list[str]]] = {}
    for sample in _SAMPLE.finditer(exposed):
        name = sample["name"]
        if name in kinds:
            families[name] = [kinds[name], sorted(re.findall(r'(\w+)="', sample["labels"] or ""))]
    return families


def moved(server: Server, case: StatisticsCase, expected: dict[str, int] | None = None) -> dict[str, int]:
    """Return each count that the case's calls changed, with by how much; of its models alone.

    A stream's last response may leave well before it is counted, so what is `expected` is waited for.
    """
    before = samples(server, COUNTS, case.models)
    for call in case.calls:
        send(server.http, call)
    end = time.monotonic() + PATIENCE_S
    while True:
        after = settled(lambda: samples(server, COUNTS, case.models))
        changes = {series: count - before.get(series, 0) for series, count in sorted(after.items())}
        moves = {series: change for series, change in changes.items() if change}
        if expected in (None, moves) or time.monotonic() > end:
            return moves


def samples(server: Server, names: tuple[str, ...], models: tuple[str, ...]) -> dict[str, int]:
    """Return the values of these metrics of these models, by name and labels."""
    counts: dict[str, int] = {}
    for sample in _SAMPLE.finditer(text(server)):
        labels = dict(re.findall(r'(\w+)="([^"]*)"', sample["labels"] or ""))
        if sample["name"] in names and labels["model"] in models:
            series = ",".join(f"{name}={value}" for name, value in sorted(labels.items()))
            counts[f"{sample['name']} {series}"] = int(float(sample["value"]))
    return counts


__all__ = ["CASES", "StatisticsCase", "families", "moved", "samples"]
