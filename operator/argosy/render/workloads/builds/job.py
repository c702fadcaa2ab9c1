"""A build's Job: how long it may take, how often it is tried, when it goes.

A Job's template can never be changed, so a Job carries the hash of its template: one that stands with another is
deleted and made anew under the same name. There is then never more than one Job of a build, whatever changes and
however many operators look at it, which a hash in the name would not give.
"""

import json
from typing import Any

from argosy.api.servingpool import ServingPool
from argosy.planning.builds.plan import PlannedBuild
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


def build_job(pool: ServingPool, build: PlannedBuild, images: Images, cluster: Cluster) -> dict[str, Any]:
    """Return the Job of a build."""
    template = build_pod(pool, build, images, cluster)
    annotations = {TEMPLATE_ANNOTATION: template_hash(template), PLACEMENT_ANNOTATION: build_place_text(build)}
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


def build_place_text(build: PlannedBuild) -> str:
    """Return the build's node and GPUs as JSON: until its Pod is there, nothing else says that they are taken."""
    return json.dumps({"node": build.node, "gpus": list(build.gpus)}, sort_keys=True)


def parse_build_place(text: str) -> tuple[str, tuple[int, ...]]:
    """Node and GPUs in a text of `build_place_text`; of one that is none, since people edit Jobs, nothing."""
    try:
        read = json.loads(text)
        return str(read["node"]), tuple(int(each) for each in read["gpus"])
    except (AttributeError, KeyError, TypeError, ValueError):
        return "", ()


def deadline_s(build: PlannedBuild) -> int:
    """Return how long all tries of a build may take together, in seconds."""
    return max(1, build.timeout // 1000)


def job_hash(pool: ServingPool, build: PlannedBuild, images: Images, cluster: Cluster) -> str:
    """Return what a Job made from this build would carry in its annotation."""
    return template_hash(build_pod(pool, build, images, cluster))


def _failure_rules() -> list[dict[str, Any]]:
    """A failure that another try would not change ends the Job; a Pod that a node's drain or a preemption took counts
    for nothing.
    """
    codes = {"containerName": BUILD_CONTAINER, "operator": "In", "values": [FINAL_EXIT_CODE]}
    return [
        {"action": "FailJob", "onExitCodes": codes},
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget", "status": "True"}]},
    ]
