"""Rules on the documents of a server, whose bytes are bounded."""

import sys
from dataclasses import replace

from argosy.api import Reason
from argosy.planning.amounts import kilobytes, listed
from argosy.planning.packing.fit.fit_limits import Diagnosis
from argosy.planning.packing.fit.view import FitView
from argosy.planning.packing.layout import Layout, Replica
from argosy.planning.packing.scoring import fits

_NAMED = 3
"""Models that a message names."""


def config_too_large(view: FitView, replica: Replica) -> Diagnosis | None:
    """Diagnose a group whose rendered configuration alone is larger than one server's documents may be."""
    group, most = replica.group, view.layout.topology.facts.placed_bytes
    if group.size <= most:
        return None
    models = listed((demand.model for demand in group.demands), _NAMED, ", ")
    return Diagnosis(
        Reason.CONFIG_TOO_LARGE,
        f"the configuration of {models} takes up to {kilobytes(group.size)} of a server's ConfigMap, which may have "
        f"{kilobytes(most)} for all that the server serves. Shorten spec.config, or what else is long in the manifest.",
    )


def no_config_space(view: FitView, replica: Replica) -> Diagnosis | None:
    """Diagnose a replica that would fit if its server's documents were smaller."""
    layout, facts = view.layout, view.layout.topology.facts
    if layout.largest_size + replica.group.size <= facts.placed_bytes:
        return None
    endless = replace(facts, placed_bytes=sys.maxsize, staying_bytes=sys.maxsize)
    if not fits(replace(layout, topology=replace(layout.topology, facts=endless)), replica):
        return None
    return Diagnosis(
        Reason.NO_CONFIG_SPACE,
        f"the configuration of {replica.group.name} takes up to {kilobytes(replica.group.size)} of its server's "
        f"ConfigMap, and no server that has room for it otherwise has so much left of {kilobytes(facts.placed_bytes)}. "
        f"Let there be another server: {_for_another_server(layout, replica)}; or shorten spec.config of what is "
        "there.",
    )


def _for_another_server(layout: Layout, replica: Replica) -> str:
    """Return what has to be done for it, in words. On processors there may always be one more within maxServers."""
    facts, more = layout.topology.facts, "add a GPU"
    if facts.max_servers is None or len(layout.servers) < facts.max_servers:
        return more
    raised = "raise the pool's maxServers (or replicas, where that is set)"
    unlimited = replace(layout, topology=replace(layout.topology, facts=replace(facts, max_servers=None)))
    return raised if fits(unlimited, replica) else f"{raised} and {more}"
