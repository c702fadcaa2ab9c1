"""A build's Job: how long it may take, how often it is tried, and what ends it.

A Job's template can never be changed, so a Job carries the hash of its template: one with another hash is replaced.
"""

import json
from typing import Any

from argosy.api.servingpool import ServingPool
from argosy.planning.builds.build import ScheduledBuild
from argosy.render.names import build_name
from argosy.render.workloads.builds.pod import BUILD_CONTAINER, build_pod
from argosy.render.workloads.configmaps import PLACEMENT_ANNOTATION
from argosy.render.workloads.metadata import build_labels, owned
from argosy.render.workloads.pods.deployment import TEMPLATE_ANNOTATION, template_hash
from argosy.render.workloads.pods.inputs import Cluster, Images
from argosy_agent.contract.builds import FINAL_EXIT_CODE

TTL_S = 3600
"""How long a Job that is over stays, for its logs; one that failed without saying why for good is tried again then."""
RETRIES = 4
"""How often a Pod that failed is followed by another, each after a longer pause. What they finished is kept."""


def build_job(pool: ServingPool, build: ScheduledBuild, images: Images, cluster: Cluster) -> dict[str, Any]:
    """Return the Job of a build."""
    template = build_pod(pool, build, images, cluster)
    annotations = {TEMPLATE_ANNOTATION: template_hash(template), PLACEMENT_ANNOTATION: build_placement_text(build)}
    spec: dict[str, Any] = {
        "backoffLimit": RETRIES,
        "activeDeadlineSeconds": deadline_s(build),
        "template": template,
    }
    if cluster.ends_jobs:
        spec["ttlSecondsAfterFinished"] = TTL_S
    if cluster.judges_failures:
        spec["podFailurePolicy"] = {"rules": _failure_rules()}
    name = build_name(pool.name, build.name)
    return {**owned("batch/v1", "Job", name, pool, build_labels(pool, build.name), annotations), "spec": spec}


def build_placement_text(build: ScheduledBuild) -> str:
    """Return the build's node and GPUs as JSON. Until its Pod exists, this is the only record that they are taken."""
    return json.dumps({"node": build.node, "gpus": list(build.gpus)}, sort_keys=True)


def parse_build_placement(text: str) -> tuple[str, tuple[int, ...]]:
    """Return node and GPUs from a text of `build_placement_text`; nothing from any other text, since
    people edit Jobs.
    """
    try:
        read = json.loads(text)
        return str(read["node"]), tuple(int(gpu) for gpu in read["gpus"])
    except (AttributeError, KeyError, TypeError, ValueError):
        return "", ()


def deadline_s(build: ScheduledBuild) -> int:
    """Return how long all tries of a build may take together, in seconds."""
    return max(1, build.timeout // 1000)


def job_hash(pool: ServingPool, build: ScheduledBuild, images: Images, cluster: Cluster) -> str:
    """Return what a Job made from this build would carry in its annotation."""
    return template_hash(build_pod(pool, build, images, cluster))


def _failure_rules() -> list[dict[str, Any]]:
    """Return rules by which a failure that a retry would not change ends the Job.

    A Pod that a node's drain or a preemption ended does not count.
    """
    codes = {"containerName": BUILD_CONTAINER, "operator": "In", "values": [FINAL_EXIT_CODE]}
    return [
        {"action": "FailJob", "onExitCodes": codes},
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
    ]
