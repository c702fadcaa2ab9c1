"""What is asked of a cluster follows from what its API server offers, and from its version."""

from dataclasses import replace
from typing import Any

import pytest

from argosy.cluster.client.connection import Connection
from argosy.cluster.client.discovery import offered
from argosy.cluster.client.errors import NotFoundError
from argosy.render.workloads import Cluster

_DEVICES = ["resourceslices", "resourceclaims", "resourceclaimtemplates"]


class Answers(Connection):
    """An API server of this minor version with these groups."""

    def __init__(self, minor: str, groups: set[str]) -> None:
        self._minor, self._groups = minor, groups

    async def get_raw(self, path: str) -> dict[str, Any]:
        if path == "/version":
            return {"major": "1", "minor": self._minor, "gitVersion": f"v1.{self._minor}.0"}
        if path.removeprefix("/apis/") not in self._groups:
            raise NotFoundError(404, "NotFound", path)
        names = _DEVICES if path == "/apis/resource.k8s.io/v1" else ["poddisruptionbudgets"]
        return {"resources": [{"name": name} for name in names]}


NEW = Cluster("policy/v1", evicts_unready=True, ends_jobs=True, judges_failures=True)


@pytest.mark.parametrize(
    ("minor", "groups", "expected"),
    [
        ("20", {"policy/v1beta1"}, Cluster("policy/v1beta1")),
        ("21", {"policy/v1"}, Cluster("policy/v1", ends_jobs=True)),
        ("25", {"policy/v1"}, Cluster("policy/v1", ends_jobs=True)),
        ("26", {"policy/v1"}, Cluster("policy/v1", ends_jobs=True, judges_failures=True)),
        ("27", {"policy/v1"}, NEW),
        ("", {"policy/v1"}, Cluster("policy/v1")),
        ("29+", {"policy/v1"}, NEW),
        ("34", {"policy/v1", "resource.k8s.io/v1"}, replace(NEW, device_claims=True)),
    ],
)
async def test_what_a_version_offers(minor: str, groups: set[str], expected: Cluster) -> None:
    assert await offered(Answers(minor, groups)) == expected
