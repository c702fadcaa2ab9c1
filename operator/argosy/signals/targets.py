"""What is read of a pool: its servers, and the queries of its members."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from argosy.analysis.subjects import AnalysisTargets
from argosy.api import Ensemble, InferenceModel
from argosy.api.values.identity import PoolKey


@dataclass(frozen=True, slots=True)
class ScrapeTarget:
    """A server that runs. `url`: of its metrics; `pod`: its label in Prometheus, in the pool's namespace.

    `serves`: the members that it has ready, resources' names by the names of their models on the server.
    """

    server: str
    url: str = ""
    pod: str = ""
    serves: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Query:
    """A PromQL query of a member's scaling or rollout: the resource's name, the query's own, and the text with its
    variables.
    """

    member: str
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class PoolTargets:
    """One pool's servers and queries. `served_names`: by resource name, the name that clients use. `analyzed`: members
    whose versions are read one by one, with the seconds after a load that are left out; `under_way`: whether a
    candidate among them is proven.
    """

    pool: PoolKey
    targets: tuple[ScrapeTarget, ...] = ()
    queries: tuple[Query, ...] = ()
    served_names: Mapping[str, str] = field(default_factory=dict)
    analyzed: Mapping[str, float] = field(default_factory=dict)
    under_way: bool = False

    @property
    def serves(self) -> dict[str, Mapping[str, str]]:
        """The members of each server."""
        return {target.server: target.serves for target in self.targets}


def measured_pool(
    key: PoolKey,
    members: Iterable[InferenceModel | Ensemble],
    targets: Iterable[ScrapeTarget],
    analysis: AnalysisTargets | None = None,
) -> PoolTargets:
    """Return a pool with these servers, and the queries that its members name. `analysis`: what its rollouts need."""
    queries: list[Query] = []
    names: dict[str, str] = {}
    for member in members:
        names[member.name] = member.served_name
        scaling = member.spec.scaling
        declared = scaling.targets.queries if scaling is not None else ()
        queries += [Query(member.name, query.name, query.query) for query in declared]
    analysis = analysis or AnalysisTargets()
    queries += [Query(member, name, text) for member, name, text in analysis.queries]
    return PoolTargets(key, tuple(targets), tuple(queries), names, analysis.warm_up_s, analysis.under_way)
