"""A pool's models and ensembles by name, and where the plan has each of them."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from argosy.api import Ensemble, InferenceModel
from argosy.fleet.demand.grouping import runs_of
from argosy.fleet.plan import PoolPlan


@dataclass(frozen=True, slots=True)
class Members:
    """What a pool is to serve.

    `broken`: names that are declared and have no valid form, so that what serves under them is left as it is.
    `runs`: the models of each ensemble. `elsewhere`: names that another pool is to serve by now, and whether requests
    reach them there.
    """

    models: Mapping[str, InferenceModel] = field(default_factory=dict)
    ensembles: Mapping[str, Ensemble] = field(default_factory=dict)
    broken: frozenset[str] = frozenset()
    runs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    elsewhere: Mapping[str, bool] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        models: Iterable[InferenceModel],
        ensembles: Iterable[Ensemble],
        broken: Iterable[str] = (),
        elsewhere: Mapping[str, bool] | None = None,
    ) -> "Members":
        """The members of one pool."""
        composed = {each.name: each for each in ensembles}
        runs = runs_of(composed.values())
        return cls({each.name: each for each in models}, composed, frozenset(broken), runs, elsewhere or {})

    def declares(self, name: str) -> bool:
        """Whether something of this name is asked of the pool, well or not."""
        return name in self.models or name in self.ensembles or name in self.broken

    def knows(self, name: str) -> bool:
        """Whether something of this name is asked of this pool or another."""
        return self.declares(name) or name in self.elsewhere

    def version(self, name: str) -> int | None:
        """The declared version of a valid member."""
        member = self.models.get(name) or self.ensembles.get(name)
        return member.spec.version if member else None


@dataclass(frozen=True, slots=True)
class Places:
    """Where the plan has what. `servers`: by model and ensemble. `names`: by server, its models and ensembles.

    `homeless`: the models, and the ensembles of models, of which a replica found no place.
    """

    servers: Mapping[str, tuple[str, ...]]
    names: Mapping[str, frozenset[str]]
    homeless: frozenset[str]

    @classmethod
    def of(cls, plan: PoolPlan, members: Members) -> "Places":
        """The places of one pool's plan. An ensemble is where all of its models are."""
        names = {server.name: {placement.model for placement in server.placements} for server in plan.servers}
        servers: dict[str, list[str]] = {}
        for server in plan.servers:
            for placement in server.placements:
                servers.setdefault(placement.model, []).append(server.name)
        for ensemble, models in members.runs.items():
            whole = [each for each in servers.get(models[0], ()) if names[each] >= set(models)] if models else []
            servers[ensemble] = whole
            for server_name in whole:
                names[server_name].add(ensemble)
        unplaced = {model for each in plan.unplaced for model in each.models}
        homeless = unplaced | {name for name, models in members.runs.items() if unplaced & set(models)}
        return cls(
            {name: tuple(found) for name, found in servers.items()},
            {server_name: frozenset(found) for server_name, found in names.items()},
            frozenset(homeless),
        )
