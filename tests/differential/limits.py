"""The response cache and the rate limiter: equal requests to two servers with equal flags, on a repository of its own.

`python -m tests.differential.limits` asks Triton again, and writes its answers down.
"""

import tempfile
from pathlib import Path
from typing import Any

from tests.differential import metrics_cases
from tests.differential.cases.http_infer import floats
from tests.differential.http_calls import Call, get, infer, post, send, tensor
from tests.differential.oracle import record
from tests.differential.statistics_cases import StatisticsCase, moved, settled
from tests.peers.server import Server
from tests.peers.triton import triton

MODELS = Path(__file__).resolve().parents[1] / "models_limits"
LOADED = ("cached", "cached_chain", "cached_fails", "identity", "limited_a", "limited_b")
FLAGS = (
    "--model-control-mode=explicit",
    "--cache-config=local,size=1048576",
    "--metrics-config=summary_latencies=true",
    "--metrics-config=summary_quantiles=0.5:0.05,0.99:0.001",
    "--rate-limit=execution_count",
    "--rate-limit-resource=R:3",
    *[f"--load-model={name}" for name in LOADED],
)
CACHE_COUNTS = ("nv_cache_num_hits_per_model", "nv_cache_num_misses_per_model", "nv_inference_request_success")


def _rows(*numbers: float) -> dict[str, Any]:
    return floats([len(numbers), 1], list(numbers))


def _ask(model: str, *numbers: float) -> tuple[Call, ...]:
    return tuple(infer(model, _rows(number)) for number in numbers)


def _fail(how: str) -> Call:
    return infer("cached_fails", tensor("HOW", [1], "BYTES", [how]))


STATISTICS = [
    StatisticsCase("cache miss", _ask("cached", 1), ("cached",)),
    StatisticsCase("cache hits", _ask("cached", 1, 2, 2, 1), ("cached",)),
    StatisticsCase("cache of a batch", (infer("cached", _rows(3, 4)), infer("cached", _rows(3, 4))), ("cached",)),
    StatisticsCase("cache of other values", _ask("cached", 5, 6, 7), ("cached",)),
    StatisticsCase("cached ensemble", _ask("cached_chain", 8, 8), ("cached_chain", "cached", "identity")),
    StatisticsCase("cached step", _ask("cached", 9) + _ask("cached_chain", 9), ("cached_chain", "cached")),
    StatisticsCase("cached strings", (_fail("words"), _fail("words")), ("cached_fails",)),
    StatisticsCase("uncached", _ask("identity", 1, 1), ("identity",)),
]
ANSWERS: dict[str, Call] = {
    "hit": infer("cached", _rows(1)),
    "hit of an ensemble": infer("cached_chain", _rows(8)),
    "hit with an id": infer("cached", _rows(1), id="another"),
    "hit with outputs": infer("cached", _rows(2), outputs=[{"name": "OUTPUT0"}]),
    "beyond": post("/v2/repository/models/limited_beyond/load"),
    "both scopes": post("/v2/repository/models/limited_scope/load"),
    "config of a cached model": get("/v2/models/cached/config"),
    "config of a limited model": get("/v2/models/limited_a/config"),
}


def counts(server: Server) -> dict[str, int]:
    """Return the counts of the cache and the successes that the metrics have, by model."""
    return settled(lambda: metrics_cases.samples(server, CACHE_COUNTS, LOADED))


def main() -> None:
    """Record every case."""
    with tempfile.TemporaryDirectory() as folder:
        server = triton(MODELS, *FLAGS, log=Path(folder) / "triton.log")
        try:
            statistics = [(case.name, moved(server.http, case)) for case in STATISTICS]
            answers = [(name, send(server.http, call)) for name, call in ANSWERS.items()]
            more = [("metrics", counts(server)), ("families", metrics_cases.families(server))]
            record("limits", [*statistics, *answers, *more])
        finally:
            server.stop()


if __name__ == "__main__":
    main()
