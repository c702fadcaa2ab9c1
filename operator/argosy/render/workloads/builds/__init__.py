"""The objects of an engine's build: its request, its report, its rights and its Job.

What may live here: objects that depend only on a scheduled build, its pool and the release's images. `planning/builds`
decides which builds there are and which run now.
"""

from argosy.render.workloads.builds.job import TTL_S, build_job, deadline_s, job_hash, parse_build_placement
from argosy.render.workloads.builds.objects import build_claim, build_configmaps, build_rights, builds_network_policy

__all__ = [
    "build_claim",
    "build_configmaps",
    "build_job",
    "build_rights",
    "builds_network_policy",
    "deadline_s",
    "job_hash",
    "parse_build_placement",
    "TTL_S",
]
