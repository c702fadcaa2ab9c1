"""A ServingPool's status."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from argosy.api import Condition, ConditionType, Reason, ServingPool, ServingPoolStatus
from argosy.api.status import GpuCount, GpuHolder, GpuPlacement, OccupantStatus, ServerStatus, UnplacedStatus
from argosy.fleet.amounts import counted
from argosy.fleet.facts import Node, ServerReport
from argosy.fleet.plan import Placement, PoolPlan, ServerPlan
from argosy.fleet.status.conditions import Finding, conditions
from argosy.fleet.status.served import Served
from argosy.fleet.status.unsupported import unused_pool_settings

_CPU = -1
_HOLDERS = 10
"""How many holders of GPUs a status names."""


def pool_status(
    pool: ServingPool, served: Served, nodes: Mapping[str, Node], before: Sequence[Condition], now: datetime
) -> ServingPoolStatus:
    """The status of a valid pool, whose plan was made for `nodes`, by name."""
    plan, reports = served.plan, served.observed.reports
    servers = tuple(_server(server, reports.get(server.name)) for server in plan.servers)
    generation = pool.metadata.generation
    return ServingPoolStatus(
        observed_generation=generation,
        conditions=conditions(before, _findings(pool, plan, servers, reports), generation, now),
        replicas=len(servers),
        available_replicas=sum(server.ready for server in servers),
        url=next((server.url for server in servers if server.ready and server.url), ""),
        servers=servers,
        gpus=_gpus(plan),
        placement=_placement(plan, nodes),
        unplaced=tuple(
            UnplacedStatus(name=each.group, reason=each.reason, message=each.message) for each in plan.unplaced
        ),
    )


def _gpus(plan: PoolPlan) -> GpuCount:
    most = sorted(plan.withheld.items(), key=lambda held: (-held[1], held[0]))[:_HOLDERS]
    return GpuCount(
        total=plan.gpus_total,
        used=plan.gpus_used,
        free=plan.gpus_free,
        withheld=plan.gpus_withheld,
        withheld_by=tuple(GpuHolder(holder=holder, gpus=gpus) for holder, gpus in most),
        one_per_model=plan.gpus_one_per_model,
    )


def _findings(
    pool: ServingPool, plan: PoolPlan, servers: Sequence[ServerStatus], reports: Mapping[str, ServerReport]
) -> list[Finding]:
    unused = unused_pool_settings(pool)
    valid = Finding(
        ConditionType.VALID,
        True,
        Reason.SETTING_WITHOUT_EFFECT if unused else Reason.VALID,
        f"without effect in this release: {unused}" if unused else "",
    )
    ready = _ready(pool, servers, [report.trouble for report in reports.values() if report.trouble])
    waiting = ready.reason is Reason.SERVERS_NOT_READY
    return [
        ready,
        Finding(
            ConditionType.RECONCILING,
            waiting,
            Reason.PROGRESSING if waiting else Reason.SETTLED,
            ready.message if waiting else "nothing is left to do",
        ),
        Finding(ConditionType.STALLED, False, Reason.SETTLED),
        valid,
        _placed(pool, plan),
    ]


def _ready(pool: ServingPool, servers: Sequence[ServerStatus], troubles: Sequence[str]) -> Finding:
    kind = ConditionType.READY
    if pool.spec.suspend:
        return Finding(kind, False, Reason.SUSPENDED, "spec.suspend is true: no server runs, and no GPU is held")
    if not servers:
        return Finding(kind, True, Reason.NO_MODELS, "no model has a place here, so no server runs")
    waiting = [server.name for server in servers if not server.ready]
    so_far = f"servers that answer: {len(servers) - len(waiting)} of {len(servers)}"
    if waiting:
        why = "; ".join(troubles) or f"waiting for {', '.join(waiting)}"
        return Finding(kind, False, Reason.SERVERS_NOT_READY, f"{so_far}; {why}")
    return Finding(kind, True, Reason.SERVERS_READY, so_far)


def _placed(pool: ServingPool, plan: PoolPlan) -> Finding:
    kind = ConditionType.PLACED
    if pool.spec.suspend:
        return Finding(kind, False, Reason.SUSPENDED, "spec.suspend is true")
    others = f", others hold {plan.gpus_withheld}" if plan.gpus_withheld else ""
    used = (
        f"{plan.gpus_used} of {plan.gpus_total} GPUs are used{others}; "
        f"one model per GPU would take {plan.gpus_one_per_model}"
    )
    if not plan.unplaced:
        return Finding(kind, True, Reason.PLACED, used)
    first = plan.unplaced[0]
    reason = Reason.PARTIALLY_PLACED if plan.servers else Reason(first.reason)
    without = counted(len(plan.unplaced), "replica")
    return Finding(kind, False, reason, f"{without} without a place: {first.group}: {first.message}")


def _server(server: ServerPlan, report: ServerReport | None) -> ServerStatus:
    return ServerStatus(
        name=server.name,
        node=server.node,
        gpus=server.gpus,
        ready=report is not None and report.ready,
        models=len(server.placements),
        url=report.url if report else "",
    )


def _placement(plan: PoolPlan, nodes: Mapping[str, Node]) -> tuple[GpuPlacement, ...]:
    found = []
    for server in plan.servers:
        node = nodes[server.node]
        for gpu in node.gpus:
            if not gpu.is_cpu and gpu.index in server.gpus:
                here = [p for p in server.placements if gpu.index in p.gpus]
                found.append(_device(server, gpu.index, gpu.memory, here))
        on_cpu = [p for p in server.placements if not p.gpus]
        if on_cpu:
            found.append(_device(server, _CPU, sum(g.memory for g in node.gpus if g.is_cpu), on_cpu))
    return tuple(found)


def _device(server: ServerPlan, gpu: int, memory: int, here: Sequence[Placement]) -> GpuPlacement:
    return GpuPlacement(
        server=server.name,
        node=server.node,
        gpu=gpu,
        memory=memory,
        memory_used=sum(p.memory for p in here),
        models=tuple(
            OccupantStatus(model=p.model, version=p.version, gpu_memory=p.memory, compute=p.compute, whole=p.whole)
            for p in here
        ),
    )
