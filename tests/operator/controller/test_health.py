"""What the kubelet, Prometheus and people get from the operator's own port."""

import aiohttp
from prometheus_client.parser import text_string_to_metric_families

from argosy.controller.health import Health
from argosy.controller.metrics.metrics import Metrics


async def test_health_readiness_and_metrics() -> None:
    metrics, error, notes = Metrics(), ["no CRD"], ["nodes/n: no label"]
    health = Health(metrics, lambda: error[0], lambda: notes)
    port = await health.start("127.0.0.1", 0)
    url = f"http://127.0.0.1:{port}"
    try:
        async with aiohttp.ClientSession() as session:
            async with session.get(f"{url}/healthz") as answer:
                assert answer.status == 200
            async with session.get(f"{url}/readyz") as answer:
                assert (answer.status, await answer.text()) == (503, "no CRD\nnodes/n: no label\n")
            error[0] = ""
            async with session.get(f"{url}/readyz") as answer:
                assert (answer.status, await answer.text()) == (200, "ok\nnodes/n: no label\n")
            metrics.began(0.1)
            metrics.ended(0.2, failed=True)
            metrics.request("patch", "services", 200, 0.01)
            async with session.get(f"{url}/metrics") as answer:
                families = {family.name: family for family in text_string_to_metric_families(await answer.text())}
    finally:
        await health.stop()
    results = {sample.labels.get("result"): sample.value for sample in families["argosy_reconcile"].samples}
    assert results["failed"] == 1
    requested = families["argosy_api_requests"].samples
    assert [sample.labels for sample in requested if sample.name.endswith("_total")] == [
        {"verb": "patch", "resource": "services", "status": "200"}
    ]
