"""Which objects of a pool's builds are applied, and which are retained unchanged. Pure.

A Job exists while its build is to run. A finished Job is retained for its time to live, for its logs, and is not
applied again. A Job whose template is outdated is recreated, unless one of its Pods runs: hours of work are worth more
than a changed toleration.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import Enum

from argosy.api.servingpool import ServingPool
from argosy.api.values.identity import Identity
from argosy.cluster.cache.builds.build_objects import BuildJob
from argosy.cluster.cache.builds.build_view import BuildView
from argosy.planning.builds.build import JobState, ScheduledBuild
from argosy.planning.facts import Node
from argosy.render.names import build_name
from argosy.render.workloads import (
    TTL_S,
    Cluster,
    Images,
    KubernetesObject,
    build_configmaps,
    build_job,
    build_rights,
    builds_network_policy,
    claim_identity,
    has_claim,
    job_hash,
    object_identity,
)
from argosy.render.workloads.builds import build_claim, deadline_s
from argosy_agent.contract.builds import FINAL_EXIT_CODE

UNREPORTED_S = 15.0
"""Seconds to wait for the report of a succeeded Job: its report and its end arrive in any order."""


class _Fate(Enum):
    """What happens to a Job: it is applied, retained, or deleted (and created again, if it is to run)."""

    APPLY = "apply"
    STAY = "stay"
    GO = "go"


@dataclass(frozen=True, slots=True)
class Builds:
    """Objects to apply, the identities of those to retain, and when the next round is due (`wake`).

    `owners`: the model whose status reports a refusal, by object identity.
    """

    objects: tuple[KubernetesObject, ...] = ()
    keep: frozenset[Identity] = frozenset()
    wake: datetime | None = None
    owners: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BuildRenderer:
    """Renders the objects of a pool's builds. `nodes` are by name."""

    pool: ServingPool
    images: Images
    cluster: Cluster
    now: datetime
    nodes: Mapping[str, Node] = field(default_factory=dict)

    def builds(self, planned: Sequence[ScheduledBuild], views: Mapping[str, BuildView]) -> Builds:
        """Return the objects of the pool's planned builds; those of other builds are deleted."""
        every = [self._build(build, views.get(build.name, BuildView(build.name))) for build in planned]
        policy = (builds_network_policy(self.pool),) if planned else ()
        return Builds(
            objects=(*policy, *(body for one in every for body in one.objects)),
            keep=frozenset().union(*(one.keep for one in every)),
            wake=min((one.wake for one in every if one.wake is not None), default=None),
            owners={identity: owner for one in every for identity, owner in one.owners.items()},
        )

    def _build(self, build: ScheduledBuild, view: BuildView) -> Builds:
        fate, until = self._fate(build, view)
        runs = fate is _Fate.APPLY or (fate is _Fate.STAY and not _is_over(view.job))
        objects = [*build_configmaps(self.pool, build), *(build_rights(self.pool, build) if runs else ())]
        job = Identity.of("Job", self.pool.namespace, build_name(self.pool.name, build.name))
        keep = frozenset({job}) if fate is _Fate.STAY else frozenset()
        if runs and has_claim(build.gpus):
            # A device that is no longer published cannot be rendered, and a Pod that follows needs the template.
            keep |= {claim_identity(self.pool, build_name(self.pool.name, build.name), build.gpus)}
            template = build_claim(self.pool, build, self.nodes.get(build.node))
            objects += [template] if template is not None else []
        if fate is _Fate.APPLY:
            objects.append(build_job(self.pool, build, self.images, self.cluster))
        owners = {str(object_identity(body)): build.owners[0] for body in objects} if build.owners else {}
        return Builds(tuple(objects), keep, until, owners)

    def _fate(self, build: ScheduledBuild, view: BuildView) -> tuple[_Fate, datetime | None]:
        """Return what happens to the build's Job, and until when without a change."""
        if view.job is None:
            return (_Fate.APPLY if build.start else _Fate.GO), None
        if not _is_over(view.job):
            return self._fate_of_active(build, view, view.job), None
        until = self._stays_until(build, view, view.job)
        return (_Fate.STAY, until) if until is not None and self.now < until else (_Fate.GO, None)

    def _fate_of_active(self, build: ScheduledBuild, view: BuildView, job: BuildJob) -> _Fate:
        if not build.start and not build.is_over:
            return _Fate.GO
        if view.last_code == FINAL_EXIT_CODE and not self.cluster.judges_failures:
            return _Fate.GO  # Kubernetes would retry a build that cannot succeed
        reported = view.report is not None and view.report.is_final
        if reported and view.by_others:
            return _Fate.GO  # a Pod of an earlier Job ended the build: this one's would only begin again
        if self._is_as_made(build, job):
            return _Fate.APPLY if build.start else _Fate.STAY
        return _Fate.STAY if view.runs or reported else _Fate.GO

    def _stays_until(self, build: ScheduledBuild, view: BuildView, job: BuildJob) -> datetime | None:
        """Return until when a finished Job is retained; None where it is not."""
        since = job.since or self.now
        if view.report is None or not view.report.is_final:
            if job.state is JobState.COMPLETE:
                return since + timedelta(seconds=UNREPORTED_S)
            if not self._is_as_made(build, job) or job.deadline_s != deadline_s(build):
                return None  # the cause of its failure may have been fixed
        return since + timedelta(seconds=TTL_S)

    def _is_as_made(self, build: ScheduledBuild, job: BuildJob) -> bool:
        """Return whether the Job's template is current. A finished Job is not in the plan, so its own GPUs count."""
        placed = build if build.start else replace(build, node=job.node, gpus=job.gpus)
        return job_hash(self.pool, placed, self.images, self.cluster) == job.template


def _is_over(job: BuildJob | None) -> bool:
    return job is not None and job.state in (JobState.COMPLETE, JobState.FAILED)
