"""A ServingPool's status."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from argosy.api import Condition, ConditionType, Reason, ServingPool, ServingPoolStatus
from argosy.api.consolidationstatus import ConsolidationStatus
from argosy.api.status import CordonedGpu, GpuCount, GpuHolder, ServerStatus, UnplacedStatus
from argosy.api.values.times import parse_time
from argosy.planning.amounts import listed, quantity
from argosy.planning.facts import Node, ServerReport
from argosy.planning.migration.disruption import Disruption
from argosy.planning.nodes.cordons import UNCORDONED_AT
from argosy.planning.plan import PoolPlan, ServerPlan
from argosy.status.conditions import Finding, bounded, conditions
from argosy.status.findings.scaling import pool_scaling
from argosy.status.findings.unsupported import unused_pool_settings
from argosy.status.progress.pool_progress import PoolProgress
from argosy.status.stalled import stalled

_SERVERS, _UNPLACED, _HOLDERS = 100, 50, 10
"""How many servers, replicas without a place and holders of GPUs a status lists: it has to fit into one object."""
_FAULTS = 3
"""Nodes whose devices cannot be read, or whose number of them changes, that the condition Placed names."""
_UNPLACED_MESSAGE = 1000
"""Characters that it has for each of the replicas without a place."""
_REMEDY = 300
"""Characters that it has for each remedy."""


def pool_status(
    pool: ServingPool,
    progress: PoolProgress,
    before: Sequence[Condition],
    now: datetime,
    disruption: Disruption | None = None,
    cordons: Sequence[CordonedGpu] = (),
    faulty: Sequence[Node] = (),
    consolidation: ConsolidationStatus | None = None,
    closed: Sequence[str] = (),
    lower_bound: int = 0,
    unsteady: Sequence[Node] = (),
) -> ServingPoolStatus:
    """Return the status of a valid pool. The models of each GPU are not listed: servers' ConfigMaps record them.

    `disruption`: the servers that the round was not allowed to stop; `cordons`: the cordoned GPUs;
    `faulty`: nodes whose devices cannot be read; `consolidation`: what would come free, or is moved; `closed`: devices
    that only the servers get which have them; `lower_bound`: the GPUs that no plan can do without; `unsteady`: nodes
    whose number of devices goes on changing.
    """
    plan, reports = progress.plan, progress.observed.reports
    servers = tuple(_server(server, reports.get(server.name)) for server in plan.servers)
    generation, notes = pool.metadata.generation, _notes(pool, cordons, faulty, closed, unsteady)
    return ServingPoolStatus(
        observed_generation=generation,
        conditions=conditions(
            before,
            _findings(pool, progress, servers, disruption, notes),
            generation,
            now,
        ),
        replicas=len(servers),
        available_replicas=sum(server.ready for server in servers),
        url=next((server.url for server in servers if server.ready and server.url), ""),
        grpc_address=next(
            (report.grpc_address for report in reports.values() if report.ready and report.grpc_address), ""
        ),
        servers=_shown(servers),
        gpus=_gpus(plan, lower_bound),
        remaining_servers=max(0, len(servers) - _SERVERS),
        unplaced=_unplaced(progress),
        remaining_unplaced=max(0, len(plan.unplaced) - _UNPLACED),
        cordoned_gpus=tuple(cordons),
        consolidation=consolidation,
    )


def _shown(servers: Sequence[ServerStatus]) -> tuple[ServerStatus, ...]:
    """Return as many servers as fit into a status, in their order. Those that do not answer are kept first."""
    if len(servers) <= _SERVERS:
        return tuple(servers)
    chosen = {server.name for server in sorted(servers, key=lambda server: server.ready)[:_SERVERS]}
    return tuple(server for server in servers if server.name in chosen)


def _unplaced(progress: PoolProgress) -> tuple[UnplacedStatus, ...]:
    return tuple(
        UnplacedStatus(
            name=replica.group,
            reason=replica.reason,
            message=bounded(replica.message, _UNPLACED_MESSAGE),
            remedy=bounded(progress.remedies.get(replica.group, ""), _REMEDY),
        )
        for replica in progress.plan.unplaced[:_UNPLACED]
    )


def _gpus(plan: PoolPlan, lower_bound: int) -> GpuCount:
    most = sorted(plan.withheld.items(), key=lambda entry: (-entry[1], entry[0]))[:_HOLDERS]
    return GpuCount(
        total=plan.gpus_total,
        used=plan.gpus_used,
        free=plan.gpus_free,
        withheld=plan.gpus_withheld,
        withheld_by=tuple(GpuHolder(holder=holder, gpus=gpus) for holder, gpus in most),
        one_per_model=plan.gpus_one_per_model,
        lower_bound=lower_bound,
        gap=max(0, plan.gpus_used - lower_bound),
    )


def _findings(
    pool: ServingPool,
    progress: PoolProgress,
    servers: Sequence[ServerStatus],
    disruption: Disruption | None,
    notes: str,
) -> list[Finding]:
    unused = unused_pool_settings(pool)
    valid = Finding(
        ConditionType.VALID,
        True,
        Reason.SETTING_WITHOUT_EFFECT if unused else Reason.VALID,
        f"without effect in this release: {unused}" if unused else "",
    )
    running = _progress(pool, servers, progress.observed.reports) if disruption is None else _limited(disruption)
    return [*running, valid, _placed(pool, progress, notes), pool_scaling(pool)]


def _progress(pool: ServingPool, servers: Sequence[ServerStatus], reports: Mapping[str, ServerReport]) -> list[Finding]:
    """Return Ready, Reconciling and Stalled of a pool that is not limited in its changes."""
    ready = _ready(pool, servers, reports)
    waiting = ready.reason is Reason.SERVERS_NOT_READY
    reason = Reason.PROGRESSING if waiting else Reason.SETTLED
    message = ready.message if waiting else "nothing is left to do"
    return [
        ready,
        Finding(ConditionType.RECONCILING, waiting, reason, message),
        Finding(ConditionType.STALLED, False, Reason.SETTLED),
    ]


def _limited(disruption: Disruption) -> list[Finding]:
    """Return Ready, Reconciling and Stalled of a pool that would stop more servers than it may."""
    names = listed(disruption.servers, separator=", ")
    message = (
        f"the Nodes of {len(disruption.servers)} of {quantity(disruption.of, 'server')} are gone, though these answer "
        f"and serve what no other does; spec.maxDisruption gives up {disruption.allowed}: {names}. They stay as they "
        'are until the Nodes are back or the Pods end. To let them go, raise spec.maxDisruption ("100%" gives up all)'
    )
    return stalled(Reason.DISRUPTION_LIMITED, message, "these servers are not changed")


def _ready(pool: ServingPool, servers: Sequence[ServerStatus], reports: Mapping[str, ServerReport]) -> Finding:
    kind = ConditionType.READY
    if pool.spec.suspend:
        return Finding(kind, False, Reason.SUSPENDED, "spec.suspend is true: no server runs, and no GPU is held")
    if not servers:
        return Finding(kind, True, Reason.NO_MODELS, "no model has a place here, so no server runs")
    silent = [
        server.name for server in servers if (report := reports.get(server.name)) and report.ready and report.expired
    ]
    waiting = [server.name for server in servers if not server.ready and server.name not in silent]
    so_far = f"servers that answer: {sum(server.ready for server in servers)} of {len(servers)}"
    if silent and not waiting:
        why = (
            f"whether {listed(silent, separator=', ')} answers is not known: its agent has reported nothing for a while"
        )
        return Finding(kind, None, Reason.REPORT_EXPIRED, f"{so_far}; {why}; see the log of the container agent there")
    if waiting:
        why = (
            listed(report.error for report in reports.values() if report.error)
            or f"waiting for {listed(waiting, separator=', ')}"
        )
        return Finding(kind, False, Reason.SERVERS_NOT_READY, f"{so_far}; {why}")
    return Finding(kind, True, Reason.SERVERS_READY, so_far)


def _placed(pool: ServingPool, progress: PoolProgress, notes: str) -> Finding:
    """Return Placed of a pool; `notes` are clauses on what it may not use."""
    kind, plan = ConditionType.PLACED, progress.plan
    if pool.spec.suspend:
        return Finding(kind, False, Reason.SUSPENDED, "spec.suspend is true")
    others = f", others hold {plan.gpus_withheld}" if plan.gpus_withheld else ""
    used = (
        f"{plan.gpus_used} of {plan.gpus_total} GPUs are used{others}; "
        f"one model per GPU would take {plan.gpus_one_per_model}{notes}"
    )
    if not plan.unplaced:
        return Finding(kind, True, Reason.PLACED, used)
    first = plan.unplaced[0]
    reason = Reason.PARTIALLY_PLACED if plan.servers else Reason(first.reason)
    without = quantity(len(plan.unplaced), "replica")
    why = f"{first.group}: {progress.reason_of(first)}{notes}"
    return Finding(kind, False, reason, f"{without} without a place: {why}")


def _notes(
    pool: ServingPool,
    cordons: Sequence[CordonedGpu],
    faulty: Sequence[Node],
    closed: Sequence[str],
    unsteady: Sequence[Node],
) -> str:
    """Return clauses with the cordoned GPUs, those that only their servers get, and the nodes whose devices cannot be
    read or whose number of them goes on changing; empty if there are none.
    """
    faults = listed((f"{node.name}: {node.fault}" for node in faulty), _FAULTS)
    changing = "".join(f"; on node {node.name} {node.unsteady}" for node in unsteady[:_FAULTS])
    changing += f"; and {len(unsteady) - _FAULTS} more such nodes" if len(unsteady) > _FAULTS else ""
    left = f"; only for the servers that have them: {listed(closed, _FAULTS)}" if closed else ""
    return _cordoned(pool, cordons) + left + (f"; nodes that take nothing new: {faults}" if faults else "") + changing


def _cordoned(pool: ServingPool, cordons: Sequence[CordonedGpu]) -> str:
    """Return a clause with the cordoned GPUs; empty if there are none."""
    if not cordons:
        return ""
    names = listed((f"{cordon.node}/{cordon.gpu}" for cordon in cordons), separator=", ")
    annotation, wrong = pool.metadata.annotations.get(UNCORDONED_AT, ""), ""
    if annotation and parse_time(annotation) is None:
        wrong = f"; metadata.annotations[{UNCORDONED_AT}]: {annotation[:80]!r} is no time in RFC 3339 with a zone"
    return f"; cordoned for device errors: {names} (status.cordonedGpus says how to lift it){wrong}"


def _server(server: ServerPlan, report: ServerReport | None) -> ServerStatus:
    return ServerStatus(
        name=server.name,
        node=server.node,
        gpus=server.gpus,
        ready=report is not None and report.ready and not report.expired,
        models=len(server.placements),
        url=report.url if report else "",
    )
