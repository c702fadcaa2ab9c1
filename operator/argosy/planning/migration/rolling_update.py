"""Rolling updates: a changed Pod template reaches one server of a pool after the other."""

from collections.abc import Sequence
from dataclasses import dataclass

from argosy.planning.packing.servers import natural


@dataclass(frozen=True, slots=True)
class ServerUpgrade:
    """One server: whether its Pod template is outdated, whether it answers, and whether it has loaded its models.

    `settled`: every model was ready or failed once since its Pod began. `relied_on`: it serves something that drains on
    a server with the newest template, so that no other server may.
    """

    name: str
    outdated: bool
    ready: bool
    settled: bool
    relied_on: bool = False


def may_upgrade(servers: Sequence[ServerUpgrade]) -> frozenset[str]:
    """Return the server that may get the newest template now; empty while one that has it is not ready or still loads.

    Of several, one that serves nothing goes first: a template that mends it takes nothing away.
    """
    if any(not server.outdated and not (server.ready and server.settled) for server in servers):
        return frozenset()
    outdated = [server for server in servers if server.outdated and not server.relied_on]
    chosen = min(outdated, key=lambda server: (server.ready, server.settled, natural(server.name)), default=None)
    return frozenset({chosen.name} if chosen else ())
