"""What is asked of a cluster follows from what its API server offers, and from its version."""

from typing import Any

import pytest

from argosy.cluster import discovery
from argosy.cluster.errors import NotFoundError
from argosy.render.workloads import Cluster


def answers(minor: str, groups: set[str]) -> discovery.Get:
    async def get(path: str) -> dict[str, Any]:
        if path == "/version":
            return {"major": "1", "minor": minor, "gitVersion": f"v1.{minor}.0"}
        if path.removeprefix("/apis/") not in groups:
            raise NotFoundError(404, "NotFound", path)
        return {"resources": [{"name": "poddisruptionbudgets"}]}

    return get


@pytest.mark.parametrize(
    ("minor", "groups", "offered"),
    [
        ("20", {"policy/v1beta1"}, Cluster("policy/v1beta1", evicts_unready=False)),
        ("26", {"policy/v1"}, Cluster("policy/v1", evicts_unready=False)),
        ("27", {"policy/v1"}, Cluster("policy/v1", evicts_unready=True)),
        ("", {"policy/v1"}, Cluster("policy/v1", evicts_unready=False)),
        ("29+", {"policy/v1"}, Cluster("policy/v1", evicts_unready=True)),
    ],
)
async def test_what_a_version_offers(minor: str, groups: set[str], offered: Cluster) -> None:
    assert await discovery.cluster(answers(minor, groups)) == offered
