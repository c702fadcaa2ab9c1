"""The golden cases of builds: a pool, what is built for it, and the objects of that."""

import json
from dataclasses import dataclass
from pathlib import Path

import yaml
from tests.operator.render.workloads.cases import IMAGES

from argosy.api import ServingPool, parse_documents
from argosy.planning.builds.build import ScheduledBuild
from argosy.render.workloads import (
    Cluster,
    KubernetesObject,
    build_configmaps,
    build_job,
    build_rights,
    builds_network_policy,
)
from argosy_agent.contract.builddocuments import parse_request

BUILD_DATA = Path(__file__).parent / "build_data"
BUILD_CASES = sorted(path.name for path in BUILD_DATA.iterdir() if path.is_dir())


@dataclass(frozen=True, slots=True)
class BuildCase:
    """A pool, what is built for it, and what the cluster offers."""

    pool: ServingPool
    builds: tuple[ScheduledBuild, ...]
    cluster: Cluster

    def objects(self, cluster: Cluster | None = None) -> tuple[KubernetesObject, ...]:
        """Return all objects of the builds."""
        return (
            builds_network_policy(self.pool),
            *(item for build in self.builds for item in self._objects(build, cluster or self.cluster)),
        )

    def _objects(self, build: ScheduledBuild, cluster: Cluster) -> tuple[KubernetesObject, ...]:
        job = build_job(self.pool, build, IMAGES, cluster)
        return (*build_configmaps(self.pool, build), *build_rights(self.pool, build), job)

    def of_kind(self, kind: str) -> list[KubernetesObject]:
        """Return the objects of one kind."""
        return [item for item in self.objects() if item["kind"] == kind]


def read_build_case(name: str) -> BuildCase:
    """Return the case in the folder of that name."""
    folder = BUILD_DATA / name / "input"
    (pool,), problems = parse_documents((folder / "pool.yaml").read_text(), "pool.yaml")
    assert isinstance(pool, ServingPool)
    assert problems == []
    provided = yaml.safe_load((folder / "builds.yaml").read_text())
    builds = tuple(
        ScheduledBuild(
            request=parse_request(json.dumps(build["request"])),
            owners=("InferenceModel serving/labels",),
            timeout=build["timeout"],
            memory=build.get("memory"),
            start=True,
            node=build.get("node", ""),
            gpus=tuple(build.get("gpus", ())),
        )
        for build in provided["builds"]
    )
    return BuildCase(pool, builds, Cluster(**provided["cluster"]))
