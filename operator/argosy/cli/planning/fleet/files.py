"""The fleet of manifests and of a file of nodes, and the servers of an earlier plan."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from argosy.api import ServingPool
from argosy.api.values.identity import PoolKey
from argosy.api.yamltext import YamlTextError, read_documents
from argosy.cli.planning.fleet.earlier_plan import NoPlanError, problems, servers_of
from argosy.cli.planning.fleet.nodes import NodesError, read_nodes
from argosy.local.manifests.checks import checked, local_shapes
from argosy.local.manifests.reading import read_manifests, unreadable
from argosy.planning.facts import CurrentServer
from argosy.snapshot import FleetSnapshot


class FleetError(Exception):
    """The fleet cannot be planned; `problems` has every reason, with the way out."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("; ".join(self.problems))


def files_snapshot(filenames: Sequence[Path], nodes: Path) -> tuple[FleetSnapshot, tuple[str, ...]]:
    """Return the fleet that these files declare, and warnings of its nodes. Nothing runs. Raises FleetError."""
    manifests = read_manifests(*filenames)
    shapes = local_shapes(manifests.resources)
    wrong = [str(problem) for problem in checked(manifests, shapes).problems]
    try:
        machines = read_nodes(nodes)
    except NodesError as error:
        raise FleetError([*wrong, *error.problems]) from error
    if wrong:
        raise FleetError([*wrong, *machines.warnings])
    return FleetSnapshot(tuple(manifests.resources), machines.nodes, shapes=shapes), machines.warnings


def with_servers_of(snapshot: FleetSnapshot, file: Path) -> FleetSnapshot:
    """Return the fleet in which the servers of a plan run, as `argosy plan -o json` wrote it. Raises FleetError."""
    servers = _read_plan(file)
    pools = {resource.key for resource in snapshot.resources if isinstance(resource, ServingPool)}
    if wrong := [f"{file}: {problem}" for problem in problems(servers, pools, snapshot.nodes)]:
        raise FleetError(wrong)
    return with_servers(snapshot, servers)


def with_servers(snapshot: FleetSnapshot, servers: Mapping[PoolKey, Sequence[CurrentServer]]) -> FleetSnapshot:
    """Return the fleet in which these servers run, and no others of these pools."""
    running = {key: replace(snapshot.pool(key), servers=tuple(of_pool)) for key, of_pool in servers.items()}
    return replace(snapshot, pools={**snapshot.pools, **running})


def _read_plan(file: Path) -> dict[PoolKey, list[CurrentServer]]:
    out = "write one with: argosy plan ... -o json > plan.json"
    try:
        documents = list(read_documents(file.read_text()))
        return servers_of(documents[0].value if len(documents) == 1 else None)
    except (OSError, UnicodeDecodeError) as error:
        raise FleetError([f"{file}: {unreadable(error)}"]) from error
    except (YamlTextError, NoPlanError) as error:
        raise FleetError([f"{file}: is no plan ({error}); {out}"]) from error
