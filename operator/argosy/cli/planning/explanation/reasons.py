"""Why each model is where it is: as lines for people, and as plain values."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any

from argosy.planning.explanation.reasons import ExplainedReplica


def chosen(replicas: Sequence[ExplainedReplica], models: Collection[str]) -> list[ExplainedReplica]:
    """Return the replicas of the groups that these models or ensembles name; all without any."""
    return [
        replica
        for replica in replicas
        if not models or replica.group in models or not {*replica.models}.isdisjoint(models)
    ]


def reason_lines(replicas: Sequence[ExplainedReplica]) -> Iterator[str]:
    """Yield for each replica where it is and what decided it, then what else it had to keep to."""
    for replica in replicas:
        where = f"{replica.devices} of node {replica.node} (server {replica.server})"
        (rule, decided), *others = replica.reasons
        yield f"{replica.group} is on {where}. {rule}: {decided}."
        yield from (f"  {also}: {reason}" for also, reason in others)


def reasons_document(replicas: Sequence[ExplainedReplica]) -> list[dict[str, Any]]:
    """Return the replicas as plain values; `rule` is what decided."""
    return [
        {
            "pool": str(replica.pool),
            "group": replica.group,
            "models": list(replica.models),
            "server": replica.server,
            "node": replica.node,
            "gpus": list(replica.gpus),
            "rule": str(replica.reasons[0][0]),
            "reasons": [{"rule": str(rule), "reason": reason} for rule, reason in replica.reasons],
        }
        for replica in replicas
    ]
