"""The objects of engines' builds: what a build is asked, where it says how far it is, its rights, its Job.

What may live here: what depends on nothing but a planned build, its pool and the release's images. Which builds there
are, and whether one runs now, is decided elsewhere.
"""

from argosy.render.workloads.builds.job import TTL_S, build_job, deadline_s, job_hash, parse_build_placement
from argosy.render.workloads.builds.objects import build_configmaps, build_rights, builds_network_policy

__all__ = [
    "build_configmaps",
    "build_job",
    "build_rights",
    "builds_network_policy",
    "deadline_s",
    "job_hash",
    "parse_build_placement",
    "TTL_S",
]
