"""Triton's own server gives scaling the same signals as ours, with means in place of percentiles."""

import asyncio
import json
from datetime import UTC, datetime

import httpx
from tests.peers.server import Server
from tests.waiting import PATIENCE_S

from argosy.api.values.identity import PoolKey
from argosy.signals.scraping import Scraper
from argosy.signals.targets import PoolTargets, ScrapeTarget

BODY = json.dumps({"inputs": [{"name": "IN", "datatype": "INT32", "shape": [1, 16], "data": list(range(16))}]}).encode()
REQUESTS = 20


def _ask(server: Server) -> None:
    with httpx.Client() as client:
        for _ in range(REQUESTS):
            client.post(f"http://{server.http}/v2/models/scale/infer", content=BODY).raise_for_status()


async def test_a_servers_own_metrics_are_signals(server: Server) -> None:
    target = ScrapeTarget("s-0", f"http://{server.metrics}/metrics", serves={"scale": "scaler"})
    pool = PoolTargets(PoolKey("n/p"), (target,))
    clock = [0.0]
    scraper = Scraper(lambda: clock[0])
    try:
        assert (await scraper.read(pool, datetime.now(UTC))).error == ""
        await asyncio.to_thread(_ask, server)
        async with asyncio.timeout(PATIENCE_S):
            while True:  # Triton's own server renews its numbers every two seconds
                clock[0] += 1
                signals = (await scraper.read(pool, datetime.now(UTC))).members["scaler"]
                if round((signals.completions or 0.0) * signals.window_s) == REQUESTS:
                    break
                await asyncio.sleep(0.2)
    finally:
        await scraper.close()
    assert signals.arrivals == signals.completions
    assert (signals.rejections, signals.pending, signals.batch) == (0.0, 0.0, 1.0)
    assert signals.compute is not None
    assert signals.latency.mean is not None
    assert 0 < signals.compute < signals.latency.mean
    assert signals.queue.mean is not None
    assert (signals.latency.p99 is not None) == (server.name == "argosy")
