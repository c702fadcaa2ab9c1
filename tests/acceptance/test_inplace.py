"""A manifest is edited while requests come: instances and batching change on the model that serves."""

from typing import Any

import httpx
from tests.acceptance.running import Asking, Starter, Up, Workspace, model, wait_for


def config(run: Up) -> dict[str, Any]:
    """Return the configuration by which the server serves the model."""
    return httpx.get(f"{run.url}/v2/models/good/config", trust_env=False).json()


def test_edits_change_the_model_that_serves(workspace: Workspace, up: Starter) -> None:
    workspace.write_model("double", 2.0)
    workspace.write(model("good", 1, "double"))
    run = up()
    run.until_ready("good")
    with Asking(run, "good", 2.0) as asking:
        for fields, count, delay in (
            ("instances: 3", 3, 0),
            ("instances: 1", 1, 0),
            ("instances: 2\n  batching: {maxQueueDelayMicroseconds: 200}", 2, 200),
        ):
            workspace.write(model("good", 1, "double") + f"  {fields}\n")
            wait_for(
                lambda count=count, delay=delay: (
                    config(run)["instance_group"][0]["count"] == count
                    and config(run).get("dynamic_batching", {}).get("max_queue_delay_microseconds", 0) == delay
                ),
                lambda: run.output,
            )
            run.until_ready("good")
    assert asking.failures == []
    log = (workspace.state / "servers" / "laptop-0" / "server.log").read_text()
    assert (log.count("loading: good:1"), log.count("changing where it serves: good:1")) == (1, 3)
