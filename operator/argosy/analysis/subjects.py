"""What is read of a pool for its rollouts, and with what each candidate is judged."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from argosy.analysis.pool_analysis import AnalysisSubject
from argosy.analysis.queries import missing_template, queries_of, query_key
from argosy.api import ServingPool
from argosy.api.model.rollout.analysis import Analysis, AnalysisTemplate
from argosy.api.model.rollout.steps import StickyKey
from argosy.api.servingpool import RuntimeName
from argosy.planning.rollouts.member import MemberRollout
from argosy.rollout.state import Phase


@dataclass(frozen=True, slots=True)
class AnalysisTargets:
    """What is read for the rollouts of a pool, by resource name.

    `warm_up_s`: members whose versions are read one by one, with the seconds after a load that are left out. `queries`:
    the resource's name, the query's own and its text, without variables for versions. `under_way`: whether a candidate
    is proven, so that the pool is read every second.
    """

    warm_up_s: Mapping[str, float] = field(default_factory=dict)
    queries: tuple[tuple[str, str, str], ...] = ()
    under_way: bool = False


def subjects(rollouts: Mapping[str, MemberRollout], pool: ServingPool | None) -> dict[str, AnalysisSubject]:
    """Return the members of a pool whose versions are read, by identity. `rollouts`: of these and others; `pool`: as it
    is acted upon, with its templates.
    """
    if pool is None:
        return {}
    templates, is_bundled = pool.spec.analysis_templates, pool.spec.runtime.name is RuntimeName.ARGOSY
    return {
        name: subject(rollout, templates, has_histograms=is_bundled)
        for name, rollout in rollouts.items()
        if rollout.declared.pool_key == pool.key
    }


def subject(
    rollout: MemberRollout, templates: tuple[AnalysisTemplate, ...], has_histograms: bool = True
) -> AnalysisSubject:
    """Return a member with a rollout as a subject of analysis. `templates`: its pool's. Without histograms, which
    NVIDIA's server does not have, durations are not compared.
    """
    settings, state = rollout.settings, rollout.state
    analysis = settings.analysis if settings is not None else Analysis()
    return AnalysisSubject(
        rollout.declared.name,
        state,
        analysis,
        queries_of(analysis, templates),
        rollout.action.min_requests,
        missing_template(analysis, templates),
        settings.shadow if settings is not None and state.phase is Phase.SHADOWING else None,
        has_histograms,
        tuple(_key(key) for key in settings.sticky) if settings is not None else (),
    )


def _key(key: StickyKey) -> str:
    return f"header {key.header}" if key.header else f"parameter {key.parameter}"


def analysis_targets(analyzed: Iterable[AnalysisSubject]) -> AnalysisTargets:
    """Return what is read for these subjects."""
    every = list(analyzed)
    return AnalysisTargets(
        {one.name: one.analysis.warm_up / 1000 for one in every},
        tuple(query for one in every for query in _queries(one)),
        any(one.state.analysis for one in every),
    )


def _queries(one: AnalysisSubject) -> Iterator[tuple[str, str, str]]:
    """Yield the queries of a subject while its candidate is proven."""
    stable, candidate = one.state.stable, one.state.candidate
    if not one.state.analysis or candidate is None:
        return
    versions = {"$(version)": str(candidate.version), "$(stableVersion)": str(stable.version) if stable else ""}
    for query in one.queries:
        text = query.query
        for variable, version in versions.items():
            text = text.replace(variable, version)
        yield one.name, query_key(query.name), text
