"""The nodes of one pool and its servers there, derived once a round."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from argosy.api import ServingPool
from argosy.planning.facts import CurrentServer, Node
from argosy.planning.nodes.selection import closed, left_out, selected


@dataclass(frozen=True, slots=True)
class PoolNodes:
    """The nodes that a pool's servers may run on (`selected`), and the nodes of all pools by name.

    `servers` are those of the last round; `running` are those of them that have not ended. `has_gpus`: models of the
    pool count on GPUs. `left_out`: where none is selected, the nodes that are not, each with the reason.
    """

    pool: ServingPool
    selected: tuple[Node, ...]
    has_gpus: bool
    by_name: Mapping[str, Node] = field(default_factory=dict)
    servers: tuple[CurrentServer, ...] = ()
    running: tuple[CurrentServer, ...] = ()
    left_out: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        pool: ServingPool,
        nodes: Iterable[Node],
        servers: Iterable[CurrentServer] = (),
        answering: Collection[str] = (),
    ) -> "PoolNodes":
        """Return the nodes of one pool with its `servers`; `answering` names the servers that answer.

        A server that does not answer, on a node that accepts no new servers of the pool, has ended for good.
        """
        every, former = tuple(nodes), tuple(servers)
        shut = closed(pool, every)
        running = tuple(server for server in former if server.node not in shut or server.name in answering)
        here = selected(pool, every, {server.node for server in running})
        out = () if here else left_out(pool, every)
        return cls(pool, here, _has_gpus(pool, here, former), {node.name: node for node in every}, former, running, out)


def _has_gpus(pool: ServingPool, nodes: Iterable[Node], servers: Iterable[CurrentServer]) -> bool:
    """Return whether models may count on GPUs.

    GPUs of servers count too: while a node is gone, no model may fall back to the CPU that does not declare it.
    """
    if pool.spec.max_gpus_per_server == 0:
        return False
    return any(not gpu.is_cpu for node in nodes for gpu in node.gpus) or any(server.gpus for server in servers)
