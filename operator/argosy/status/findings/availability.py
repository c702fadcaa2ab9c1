"""The condition Available: whether requests reach what servers have loaded, as far as that is known."""

from argosy.api import ConditionType, Reason
from argosy.planning.amounts import listed, quantity
from argosy.planning.facts import ServerReport
from argosy.status.conditions import Finding
from argosy.status.findings.loading import Loading


def availability(loading: Loading) -> Finding:
    """Return the condition Available: whether requests reach a model or an ensemble on every planned server.

    Unknown where the last report of one is too old to say what it serves, or leaves this one out.
    """
    kind, desired = ConditionType.AVAILABLE, len(loading.servers)
    if not desired or len(loading.loaded) < desired:
        return Finding(kind, False, Reason.PENDING, "it is not loaded on every server yet")
    apart = {name: why for name in loading.servers if (why := _apart(loading, name))}
    if apart:
        so_far = f"requests reach it on {desired - len(apart)} of {quantity(desired, 'server')}"
        why = listed(f"{name}: {reason}" for name, reason in apart.items())
        return Finding(kind, False, Reason.NOT_REACHABLE, f"{so_far}; {why}")
    silent = [name for name in loading.servers if loading.reports[name].expired]
    if silent:
        why = f"what {listed(silent, separator=', ')} serves is not known: its agent has reported nothing for a while"
        return Finding(kind, None, Reason.REPORT_EXPIRED, f"{why}; see the log of the container agent there")
    full = [name for name in loading.servers if loading.model in loading.reports[name].unsaid]
    if full:
        why = f"what {listed(full, separator=', ')} has of it is not known: its agent's ConfigMap is full"
        return Finding(kind, None, Reason.REPORT_INCOMPLETE, f"{why}; with fewer models on the server it is said again")
    return Finding(kind, True, Reason.AVAILABLE, f"requests reach it on {quantity(desired, 'server')}")


def _apart(loading: Loading, server: str) -> str:
    """Return why requests do not reach it on a server that has it loaded; empty where they do."""
    report: ServerReport = loading.reports[server]
    if not report.takes_requests:
        return "its Pod is not Ready, so no Service leads there"
    if loading.model not in report.routes:
        return "its Pod is not labelled for it yet, so no Service leads there"
    return ""
