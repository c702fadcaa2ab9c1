"""Changes of a model's counts by requests: counts, not durations."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.differential.cases.http_infer import floats, pair
from tests.differential.http_calls import Call, get, infer, post, send, tensor
from tests.waiting import wait


@dataclass(frozen=True)
class StatisticsCase:
    """Calls, and the models whose counts are compared before and after."""

    name: str
    calls: tuple[Call, ...]
    models: tuple[str, ...]


def _fail(how: str) -> Call:
    return infer("failing", tensor("HOW", [1], "BYTES", [how]))


def sequence(model: str, *sequences: int) -> tuple[Call, ...]:
    """Return a first, a middle and a last request of each sequence, in turn."""
    flags = ({"sequence_start": True}, {}, {"sequence_end": True})
    data = tensor("IN", [1, 1], "INT32", [1])
    return tuple(
        infer(model, data, parameters={"sequence_id": number, **flag}) for flag in flags for number in sequences
    )


def countdown(value: int) -> Call:
    """Return a request that is scheduled again so many times."""
    return infer("countdown", tensor("IN", [1, 1], "INT32", [value]))


def _chain(number: int, flag: str = "sequence_end") -> Call:
    data = tensor("VALUE", [1, 1], "INT32", [1])
    return infer("sequence_chain", data, parameters={"sequence_id": number, flag: True})


ROW = infer("identity", floats([1, 2], [1, 2]))
ROWS = infer("identity", floats([3, 2], [1, 2, 3, 4, 5, 6]))
WORDS = post("/v2/models/words/generate_stream", {"text_input": "one two three"})

CASES = [
    StatisticsCase("one row", (ROW,), ("identity",)),
    StatisticsCase("rows", (ROW, ROWS, ROWS), ("identity",)),
    StatisticsCase("refused", (infer("identity", floats([2], [1, 2])),), ("identity",)),
    StatisticsCase("model fails", (_fail("ok"), _fail("raise"), _fail("error")), ("failing",)),
    StatisticsCase("ensemble", (infer("chain", floats([2, 2], [1, 2, 3, 4])),), ("chain", "identity")),
    StatisticsCase(
        "diamond",
        (infer("diamond", tensor("IN", [1, 16], "INT32", [1] * 16)),),
        ("diamond", "scale", "add_sub"),
    ),
    StatisticsCase("bls", (infer("bls", tensor("MODEL", [1], "BYTES", ["add_sub"]), *pair()),), ("bls", "add_sub")),
    StatisticsCase("decoupled", (WORDS,), ("words",)),
    StatisticsCase("sequence", sequence("sequence_sum", 400, 401), ("sequence_sum",)),
    StatisticsCase("sequence by slots", sequence("sequence_slots", 402, 403), ("sequence_slots",)),
    StatisticsCase("sequence never begun", sequence("sequence_sum", 404)[1:], ("sequence_sum",)),
    StatisticsCase(
        "sequence of an ensemble", (_chain(405, "sequence_start"), _chain(405)), ("sequence_chain", "sequence_sum")
    ),
    StatisticsCase("scheduled again", (countdown(0), countdown(2)), ("countdown",)),
    StatisticsCase("one version", (infer("versioned/versions/1", floats([1], [1], "IN")),), ("versioned",)),
]


def moved(address: str, case: StatisticsCase) -> dict[str, int]:
    """Return each count that the case's calls changed, by `model/version/path`, with by how much."""
    before = _counts(address, case.models)
    for call in case.calls:
        send(address, call)
    after = settled(lambda: _counts(address, case.models))
    changes = {path: count - before.get(path, 0) for path, count in after.items()}
    return {path: change for path, change in sorted(changes.items()) if change}


def settled(read: Callable[[], dict[str, int]]) -> dict[str, int]:
    """Return the counts once two readings agree: a response may leave before it is counted."""
    readings = [read()]

    def agree() -> bool:
        time.sleep(0.05)
        readings.append(read())
        return readings[-1] == readings[-2]

    wait(agree, pause_s=0.0)
    return readings[-1]


def _counts(address: str, models: tuple[str, ...]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for model in models:
        answer = send(address, get(f"/v2/models/{model}/stats"))
        for version in answer["body"]["model_stats"]:
            counts.update(_version_counts(f"{model}/{version['version']}", version))
    return counts


def _version_counts(version_path: str, version: dict[str, Any]) -> dict[str, int]:
    counts = {f"{version_path}/{name}": int(version[name]) for name in ("inference_count", "execution_count")}
    for name, stage in version["inference_stats"].items():
        counts[f"{version_path}/inference_stats/{name}"] = int(stage["count"])
    for batch in version["batch_stats"]:
        for name in ("compute_input", "compute_infer", "compute_output"):
            counts[f"{version_path}/batch_stats/{batch['batch_size']}/{name}"] = int(batch[name]["count"])
    return counts
