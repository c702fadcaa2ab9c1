"""The scaling rounds of all pools, for every shell: a pool's signals become decisions, separately from reconciling.

A reconcile takes the decisions as facts, and its outcome is an input of the next rounds. It is requested only after a
material decision, so that measurements alone cause no planning.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

from argosy.analysis.pool_analysis import AnalysisSubject, MemberAnalysis, analyzed
from argosy.analysis.recordings.recording import Recording, recorded
from argosy.analysis.subjects import AnalysisTargets, analysis_targets, subjects
from argosy.api import Ensemble, InferenceModel, Member, Resource, ServingPool
from argosy.api.status import InferenceModelStatus, Status
from argosy.api.values.identity import PoolKey
from argosy.autoscaling.bottlenecks.diagnose import BottleneckReport
from argosy.autoscaling.decision import Decision
from argosy.autoscaling.memory import MemberMemory, Memory
from argosy.autoscaling.metrics.signals import PoolSignals
from argosy.autoscaling.pool.language import LanguageReport
from argosy.autoscaling.pool.memory import PoolMemory, restored
from argosy.autoscaling.pool.policies import policies
from argosy.autoscaling.pool.pool_round import PoolInputs, decide_pool
from argosy.autoscaling.pool.regimes import FleetRegime, restored_regime
from argosy.autoscaling.pool.variants import VariantsReport
from argosy.planning.demand.measured import MeasuredFootprint
from argosy.planning.rollouts.memory import CandidateEvidence
from argosy.planning.variants import RoutedModel, VariantModel, expanded
from argosy.reconcile import RoundOutcome
from argosy.status.findings import bottleneck, language
from argosy.status.measured import footprint

log = logging.getLogger(__name__)
_UNDECIDED = "pool %s: nothing can be decided on what was measured"


@dataclass(frozen=True, slots=True)
class Holding:
    """The requests that wait for members without replicas, by resource name. `error`: why no activator queues such
    requests; empty if one does.
    """

    queued: Mapping[str, int] = field(default_factory=dict)
    error: str = "nothing holds requests here"


@dataclass(slots=True)
class _Pool:
    """One pool. `inputs`: None until the first reconcile; `resources`: the source of its policies; `begun`: members
    whose memory was restored, by identity. `subjects` of analysis with their `analyses` and the `recordings` of what
    was read of them, by identity.
    """

    inputs: PoolInputs | None = None
    resources: tuple[Resource, ...] = ()
    signals: PoolSignals = field(default_factory=PoolSignals)
    memory: PoolMemory = field(default_factory=PoolMemory)
    begun: set[str] = field(default_factory=set)
    subjects: Mapping[str, AnalysisSubject] = field(default_factory=dict)
    analyses: Mapping[str, MemberAnalysis] = field(default_factory=dict)
    recordings: Mapping[str, Recording] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Decided:
    """The decisions that a reconcile acts upon, and the bottlenecks and engines that it reports, by identity.
    `regimes`: of models whose variants have servers of their own. `evidence`: of candidates; `recordings`: what was
    read of these, where readings are recorded.
    """

    decisions: Mapping[str, Decision] = field(default_factory=dict)
    bottlenecks: Mapping[str, BottleneckReport] = field(default_factory=dict)
    language: Mapping[str, LanguageReport] = field(default_factory=dict)
    variants: Mapping[str, VariantsReport] = field(default_factory=dict)
    regimes: Mapping[str, FleetRegime] = field(default_factory=dict)
    evidence: Mapping[str, CandidateEvidence] = field(default_factory=dict)
    recordings: Mapping[str, Recording] = field(default_factory=dict)
    footprints: Mapping[str, MeasuredFootprint] = field(default_factory=dict)


class Scaling:
    """Decides on pools. `holding` returns the requests that wait for one, `changed` requests its reconcile. `records`:
    whether what is read of candidates is recorded for bundles.
    """

    def __init__(
        self,
        holding: Callable[[PoolKey], Holding],
        changed: Callable[[PoolKey], None] = lambda _: None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        records: bool = False,
    ) -> None:
        self._holding, self._changed, self._clock, self._records = holding, changed, clock, records
        self._pools: dict[PoolKey, _Pool] = {}

    def measured(self, key: PoolKey, signals: PoolSignals) -> None:
        """Decide on the signals of a pool. They may only contain an error."""
        pool = self._pools.get(key)
        if pool is None:
            return
        judged = self._analyze(key, pool, signals)
        if self._decide(key, pool, replace(signals, queued=self._holding(key).queued)) or judged:
            self._changed(key)

    async def heard(self, key: PoolKey, signals: PoolSignals) -> None:
        """Decide like `measured`, on a thread of its own, since a thousand models take a while. The result is dropped
        if the pool was decided on otherwise in the meantime: the next measurement comes soon.
        """
        pool = self._pools.get(key)
        if pool is None or pool.inputs is None:
            return
        if self._analyze(key, pool, signals):
            self._changed(key)
        before, now = pool.memory, self._clock()
        signals = replace(signals, queued=self._holding(key).queued)
        try:
            inputs = self._inputs(pool, pool.inputs)
            after = await asyncio.to_thread(decide_pool, inputs, signals, before, now)
        except Exception:  # a fault of ours ends neither measuring nor the operator: what there is stays
            log.exception(_UNDECIDED, key)
            return
        if pool.memory is before:
            pool.signals, pool.memory = signals, after
            if _differ(before, after):
                self._changed(key)

    def before(self, key: PoolKey, members: Iterable[Member]) -> Decided:
        """Return what a reconcile that begins now acts upon. `members`: the pool's, with their statuses."""
        pool = self._pools.setdefault(key, _Pool())
        self._begin(pool, members)
        queued = self._holding(key).queued
        if queued != pool.signals.queued:  # requests do not wait for the next measurement
            self._decide(key, pool, replace(pool.signals, queued=queued))
        memory = pool.memory
        reports = (memory.reported_bottlenecks, memory.language, memory.variants)
        evidence = {
            name: CandidateEvidence(one.verdict, one.requests, one.traffic) for name, one in pool.analyses.items()
        }
        return Decided(
            memory.decisions, *reports, memory.regimes, evidence, pool.recordings, footprints=memory.footprints
        )

    def after(self, key: PoolKey, outcome: RoundOutcome) -> None:
        """Store the outcome of a reconcile, from which the next scaling rounds start."""
        pool = self._pools.setdefault(key, _Pool())
        holding, pool.resources = self._holding(key), expanded(outcome.valid.values())
        members = [member for member in pool.resources if isinstance(member, InferenceModel | Ensemble)]
        pool.inputs = PoolInputs(
            members=tuple(member for member in members if member.pool_key == key),
            policies=policies(pool.resources, self._clock()),
            allocations=outcome.allocations,
            grants=outcome.grants,
            statuses=outcome.statuses,
            servers=outcome.servers(key),
            products=_products(key, outcome),
            activator_error=holding.error,
        )
        serving = next((one for one in pool.resources if isinstance(one, ServingPool) and one.key == key), None)
        pool.subjects = subjects(outcome.rollouts.members, serving)
        signals = replace(pool.signals, queued=holding.queued)
        if holding.queued != pool.signals.queued and self._decide(key, pool, signals):
            self._changed(key)

    def estimated(self) -> list[tuple[Member, Memory]]:
        """Return each model and ensemble that scales with its memory. Other threads may call this."""
        pools = [(pool.inputs.members, pool.memory) for pool in list(self._pools.values()) if pool.inputs is not None]
        return [member for members, memory in pools for member in memory.estimated(members)]

    def analysis_targets(self, key: PoolKey) -> AnalysisTargets:
        """Return what is read of a pool for its rollouts."""
        pool = self._pools.get(key)
        return analysis_targets(pool.subjects.values()) if pool is not None else AnalysisTargets()

    def forget(self, key: PoolKey) -> None:
        """Forget a pool that was deleted."""
        self._pools.pop(key, None)

    def _analyze(self, key: PoolKey, pool: _Pool, signals: PoolSignals) -> bool:
        """Add a reading to the evidence on candidates. Return whether a verdict was reported. After an error of
        Argosy's own the last ones stay.
        """
        before, now = pool.analyses, self._clock()
        try:
            pool.analyses = analyzed(pool.subjects, signals, before, now)
            if self._records:
                pool.recordings = recorded(pool.recordings, pool.subjects, before, signals, now)
        except Exception:
            log.exception("pool %s: candidates cannot be judged on what was measured", key)
        verdicts = {name: one.verdict for name, one in before.items()}
        return any(one.verdict is not verdicts.get(name) for name, one in pool.analyses.items())

    def _decide(self, key: PoolKey, pool: _Pool, signals: PoolSignals) -> bool:
        """Decide again, if the pool was reconciled before. Return whether anything material changed. After an error of
        Argosy's own the last decisions stay.
        """
        if pool.inputs is None:
            return False
        pool.signals = signals
        before = pool.memory
        try:
            pool.memory = decide_pool(self._inputs(pool, pool.inputs), signals, before, self._clock())
        except Exception:
            log.exception(_UNDECIDED, key)
        return _differ(before, pool.memory)

    def _inputs(self, pool: _Pool, inputs: PoolInputs) -> PoolInputs:
        """Return the inputs with the policies of this moment, which differ if there are schedules."""
        if any(_has_schedules(member) for member in inputs.members):
            return replace(inputs, policies=policies(pool.resources, self._clock()))
        return inputs

    def _begin(self, pool: _Pool, members: Iterable[Member]) -> None:
        """Restore what the statuses of new members have of another process, once for each. An ensemble's models are
        restored as its stages, too.
        """
        every = list(members)
        new: dict[str, Member] = {member.identity: member for member in every if member.identity not in pool.begun}
        if not new:
            return
        separate = [part for part in expanded(new.values()) if _is_separate(part)]
        new |= {part.identity: part for part in separate if isinstance(part, VariantModel)}
        pool.begun |= new.keys()
        now, before = self._clock(), pool.memory
        statuses = {name: member.status for name, member in new.items() if member.status is not None}
        memories = {name: restored(status.scaling) for name, status in statuses.items()}
        stages = {new[name].name: memory for name, memory in memories.items() if isinstance(new[name], InferenceModel)}
        own = {
            name: MemberMemory(memory, stages if isinstance(new[name], Ensemble) else {})
            for name, memory in memories.items()
        }
        bottlenecks = {name: bottleneck.restored(status.bottleneck, now) for name, status in statuses.items()}
        reports = {
            name: language.restored(status.language)
            for name, status in statuses.items()
            if isinstance(status, InferenceModelStatus)
        }
        pool.memory = replace(
            before,
            members={**before.members, **own},
            bottlenecks={**before.bottlenecks, **bottlenecks},
            regimes={**before.regimes, **_regimes(separate, now)},
            language={**before.language, **{name: report for name, report in reports.items() if report is not None}},
            footprints={**before.footprints, **_footprints(statuses)},
        )


def _products(key: PoolKey, outcome: RoundOutcome) -> dict[str, str]:
    """Return the product of the GPUs of each server of a pool; empty on a node without GPUs."""
    nodes = (node for facts in outcome.facts if facts.pool == key for node in facts.nodes)
    of_node = {node.name: node.product if node.has_gpus else "" for node in nodes}
    return {server.name: of_node.get(server.node, "") for server in outcome.servers(key)}


def _differ(before: PoolMemory, after: PoolMemory) -> bool:
    """Return whether decisions or statuses differ, so that a reconcile is due."""
    return _reported(after) != _reported(before)


def _reported(memory: PoolMemory) -> tuple[object, ...]:
    bottlenecks = memory.reported_bottlenecks
    return memory.reports, bottlenecks, memory.language, _of_variants(memory), memory.footprints


def _footprints(statuses: Mapping[str, Status]) -> dict[str, MeasuredFootprint]:
    """Return what another process has reported of models' memory in their statuses."""
    reports = {name: footprint.restored(status) for name, status in statuses.items()}
    return {name: report for name, report in reports.items() if report is not None}


def _is_separate(part: Resource) -> bool:
    """Return whether it is a model whose variants have servers of their own, or one of these."""
    return isinstance(part, RoutedModel | VariantModel) and part.is_separate


def _regimes(parts: Iterable[Resource], now: datetime) -> dict[str, FleetRegime]:
    """Return the regimes that the statuses of models have whose variants have servers of their own, by identity."""
    models = (part for part in parts if isinstance(part, RoutedModel))
    regimes = {model.identity: restored_regime(model, model.declared.status, now) for model in models}
    return {name: regime for name, regime in regimes.items() if regime is not None}


def _of_variants(memory: PoolMemory) -> object:
    """Return the regimes, and the reports of variants without the times of measurements, which no status has."""
    regimes = {name: regime.variant for name, regime in memory.regimes.items()}
    return regimes, {name: (report.variants, report.since) for name, report in memory.variants.items()}


def _has_schedules(member: Member) -> bool:
    return bool(member.spec.scaling and member.spec.scaling.schedules)
