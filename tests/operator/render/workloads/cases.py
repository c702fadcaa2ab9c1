"""The golden cases: what a pool's objects are made from, and the objects as text."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from argosy.api import Ensemble, InferenceModel, ServingPool, parse_documents
from argosy.planning.demand.footprint import footprint_of
from argosy.planning.demand.members import Members
from argosy.planning.migration.bindings import PlannedBindings
from argosy.planning.migration.next_step import server_steps
from argosy.planning.migration.observed import Observed
from argosy.planning.migration.state import Migration, PoolState
from argosy.planning.migration.versions import target_revisions
from argosy.planning.plan import Placement, PoolPlan, ServerPlan
from argosy.render.keys import RenderedKeys
from argosy.render.repositories import RenderedServer, rendered_servers
from argosy.render.workloads import Cluster, Images, KubernetesObject, pool_objects

DATA = Path(__file__).parent / "data"
CASES = sorted(path.name for path in DATA.iterdir() if path.is_dir())
IMAGES = Images("example.com/argosy-runtime:1", "example.com/tritonserver:1", "example.com/argosy-agent:1")


@dataclass(frozen=True, slots=True)
class Case:
    """A pool, its members, its servers, and the API server's version of PodDisruptionBudget."""

    pool: ServingPool
    members: tuple[InferenceModel | Ensemble, ...]
    servers: tuple[RenderedServer, ...]
    pdb_version: str

    def objects(self, pdb_version: str = "") -> tuple[KubernetesObject, ...]:
        """Return all objects of the pool."""
        cluster = Cluster(pdb_version or self.pdb_version)
        return pool_objects(self.pool, self.servers, self.members, IMAGES, cluster)

    def of_kind(self, kind: str) -> list[KubernetesObject]:
        """Return the objects of one kind."""
        return [item for item in self.objects() if item["kind"] == kind]


def read_case(name: str) -> Case:
    """Return the case in the folder of that name."""
    folder = DATA / name / "input"
    resources, problems = parse_documents((folder / "resources.yaml").read_text(), "resources.yaml")
    assert problems == []
    plan = yaml.safe_load((folder / "plan.yaml").read_text())
    (pool,) = (resource for resource in resources if isinstance(resource, ServingPool))
    members = tuple(resource for resource in resources if not isinstance(resource, ServingPool))
    return Case(pool, members, _servers(pool, members, plan["servers"]), plan.get("pdbVersion", "policy/v1"))


def as_text(objects: tuple[KubernetesObject, ...]) -> str:
    """Return the objects as one YAML text."""
    text: str = yaml.dump_all(objects, Dumper=_Dumper, sort_keys=False, width=1000)
    return text


def _servers(
    pool: ServingPool, members: tuple[InferenceModel | Ensemble, ...], servers: list[dict[str, Any]]
) -> tuple[RenderedServer, ...]:
    """Return servers that have nothing yet, as a plan puts them."""
    plan = PoolPlan(pool.key, tuple(_plan(server, members) for server in servers), (), 0, 0, 0)
    mine = Members.of(pool.key, members)
    runtime = pool.spec.runtime.name
    bindings, observed, keys = PlannedBindings.of(plan, mine), Observed(), RenderedKeys(runtime=runtime)
    targets = {server.name: target_revisions(server, mine, bindings, observed, keys) for server in plan.servers}
    state = PoolState(plan, mine, bindings, observed, {}, {}, targets)
    return rendered_servers(server_steps(state, Migration(), keys), mine, (), runtime)


def _plan(server: dict[str, Any], members: tuple[InferenceModel | Ensemble, ...]) -> ServerPlan:
    models = {member.name: member for member in members if isinstance(member, InferenceModel)}
    placements = tuple(_placement(models[name], tuple(gpus)) for name, gpus in server["models"].items())
    return ServerPlan(server["name"], server["node"], tuple(server["gpus"]), placements)


def _placement(model: InferenceModel, gpus: tuple[int, ...]) -> Placement:
    need, version = footprint_of(model, 1), model.spec.version
    return Placement(model.name, version, model.name, gpus, 1, need.memory, need.compute, need.exclusive)


class _Dumper(yaml.SafeDumper):
    """Texts of several lines as blocks; no anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _text)
