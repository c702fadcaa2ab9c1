"""The fleet of manifests and of a file of nodes, and the servers of an earlier plan."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from argosy.api.values.identity import PoolKey
from argosy.api.yamltext import YamlTextError, read_documents
from argosy.cli.planning.nodes import NodesError, read_nodes
from argosy.local.manifests.checks import checked, local_shapes
from argosy.local.manifests.reading import read_manifests, unreadable
from argosy.planning.facts import CurrentServer
from argosy.snapshot import FleetSnapshot


class FleetError(Exception):
    """The fleet cannot be planned; `problems` has every reason, with the way out."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(self.problems))


def files_snapshot(filenames: Sequence[Path], nodes: Path) -> FleetSnapshot:
    """Return the fleet that these files declare. Nothing runs. Raises FleetError."""
    manifests = read_manifests(*filenames)
    shapes = local_shapes(manifests.resources)
    problems = [str(problem) for problem in checked(manifests, shapes).problems]
    try:
        machines = read_nodes(nodes)
    except NodesError as error:
        problems += error.problems
    if problems:
        raise FleetError(problems)
    return FleetSnapshot(tuple(manifests.resources), machines, shapes=shapes)


def with_servers_of(snapshot: FleetSnapshot, file: Path) -> FleetSnapshot:
    """Return the fleet in which the servers of a plan run, as `argosy plan -o json` wrote it. Raises FleetError."""
    servers = _read_plan(file)
    nodes = {node.name: {gpu.index for gpu in node.gpus} for node in snapshot.nodes}
    problems = [
        f"{file}: server {server.name} of pool {pool}: {lack}"
        for pool, of_pool in servers.items()
        for server in of_pool
        if (lack := _lack(server, nodes))
    ]
    if problems:
        raise FleetError(problems)
    return with_servers(snapshot, servers)


def with_servers(snapshot: FleetSnapshot, servers: Mapping[PoolKey, Sequence[CurrentServer]]) -> FleetSnapshot:
    """Return the fleet in which these servers run, and no others of these pools."""
    running = {key: replace(snapshot.pool(key), servers=tuple(of_pool)) for key, of_pool in servers.items()}
    return replace(snapshot, pools={**snapshot.pools, **running})


def _lack(server: CurrentServer, nodes: Mapping[str, set[int]]) -> str:
    """Return what the nodes lack of a server, in words; empty if nothing."""
    if server.node not in nodes:
        return f"there is no node {server.node}. To plan without a node, name it by --without-node"
    missing = sorted(set(server.gpus) - nodes[server.node])
    return f"node {server.node} has no GPU {missing[0]}" if missing else ""


def _read_plan(file: Path) -> dict[PoolKey, list[CurrentServer]]:
    try:
        (document,) = (document.value for document in read_documents(file.read_text()))
        return {PoolKey(str(pool["name"])): list(_servers(pool)) for pool in document["pools"]}
    except (OSError, UnicodeDecodeError) as error:
        raise FleetError([f"{file}: {unreadable(error)}"]) from error
    except (YamlTextError, KeyError, TypeError, ValueError, AttributeError) as error:
        out = "write one with: argosy plan ... -o json > plan.json"
        raise FleetError([f"{file}: is no plan ({error!r}); {out}"]) from error


def _servers(pool: Mapping[str, Any]) -> Iterator[CurrentServer]:
    for server in pool["servers"]:
        placed = {str(model["model"]): tuple(map(int, model["gpus"])) for model in server["models"]}
        yield CurrentServer(str(server["name"]), str(server["node"]), tuple(map(int, server["gpus"])), placed)
