"""Scaling rounds: signals in, decisions as facts of the next reconcile, nothing lost by a restart."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.operator.autoscaling.loads import measured
from tests.operator.planning import declared

from argosy import scaling
from argosy.api import ConditionType, Ensemble, InferenceModel, Resource
from argosy.api.crd.crds import DEFINITIONS, Column
from argosy.api.values.identity import PoolKey
from argosy.autoscaling.decision import Allocation
from argosy.autoscaling.metrics.signals import PoolSignals, Signals, VariantSignals
from argosy.controller.metrics.estimates import EstimateMetrics
from argosy.local.printing import cell
from argosy.planning.facts import Gpu, Node
from argosy.reconcile import RoundOutcome, reconcile
from argosy.scaling import Holding, Scaling
from argosy.snapshot import FleetSnapshot

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
KEY = PoolKey.of("default", "p")
NODES = (Node("a", tuple(Gpu(index, 80 << 30) for index in range(4))),)
SLO = {"slo": {"latency": {"p99": "100ms"}}, "maxBatchSize": 8}


def model(name: str, **spec: Any) -> Resource:
    return declared.model(name, **{"footprint": {"gpus": 1}} | SLO | spec)


@dataclass
class Operator:
    """One process: reconciles and scaling rounds over a clock that is set, and the statuses that outlive it."""

    resources: tuple[Resource, ...]
    nodes: tuple[Node, ...] = NODES
    now: datetime = NOON
    holding: Holding = field(default_factory=Holding)
    snapshot: FleetSnapshot = field(default_factory=lambda: FleetSnapshot(resources=(), nodes=()))
    marked: list[PoolKey] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.snapshot = FleetSnapshot(resources=(declared.pool(), *self.resources), nodes=self.nodes)
        self.start()

    def start(self) -> None:
        """Start a new process, which knows only what the cluster holds."""
        self.scaling = Scaling(lambda _: self.holding, self.marked.append, lambda: self.now)
        self.reconciled()

    def reconciled(self) -> RoundOutcome:
        members = [
            resource.model_copy(update={"status": self.snapshot.statuses.get(resource.identity)})
            for resource in self.snapshot.resources
            if isinstance(resource, InferenceModel | Ensemble)
        ]
        decided = self.scaling.before(KEY, members)
        snapshot = replace(
            self.snapshot,
            decisions=decided.decisions,
            bottlenecks=decided.bottlenecks,
            language=decided.language,
            variants=decided.variants,
            regimes=decided.regimes,
        )
        outcome = reconcile(snapshot, self.now)
        self.scaling.after(KEY, outcome)
        self.snapshot = outcome.after(snapshot)
        self.marked.clear()
        return outcome

    def under(self, rates: Mapping[str, float], seconds: float) -> None:
        """Apply this load for so long: a reading every five seconds, a reconcile where one is requested."""
        for _ in range(int(seconds / 5)):
            self.now += timedelta(seconds=5)
            signals = {name: self.measured(name, rate) for name, rate in rates.items()}
            self.scaling.measured(KEY, PoolSignals(members=signals))
            if self.marked:
                self.reconciled()

    def measured(self, name: str, rate: float) -> Signals:
        kind = "Ensemble" if name.startswith("e") else "InferenceModel"
        has = Allocation(max(1, self.replicas(name, kind)), self.status(name, kind).instances)
        result = measured(rate, has, self.now)
        if kind == "Ensemble":  # it executes nothing itself, and has no instances
            result = replace(
                result, execution=None, batch=None, max_batch=None, instances=None, busy=None, compute=None
            )
        return result if rate else replace(result, running=0.0)

    def status(self, name: str, kind: str = "InferenceModel") -> Any:
        result: Any = self.snapshot.statuses[f"{kind} default/{name}"]
        assert result.scaling is not None
        return result.scaling

    def replicas(self, name: str, kind: str = "InferenceModel") -> int:
        result: Any = self.snapshot.statuses[f"{kind} default/{name}"]
        return int(result.replicas)


def test_a_load_adds_replicas_and_its_end_takes_them_away() -> None:
    operator = Operator((model("m", maxReplicas=4),))
    assert operator.replicas("m") == 1
    operator.under({"m": 300.0}, 60)
    up = operator.replicas("m")
    assert up > 1
    assert operator.status("m").history[-1].reason == "ScaledUp"
    operator.under({"m": 5.0}, 900)
    assert operator.replicas("m") == 1
    reasons = [item.reason for item in operator.status("m").history]
    assert "ScaledDown" in reasons
    assert len(reasons) <= 10


def test_a_constant_load_asks_for_no_reconcile_after_it_settled() -> None:
    operator = Operator((model("m", maxReplicas=4),))
    operator.under({"m": 200.0}, 800)
    history = operator.status("m").history
    for _ in range(60):
        operator.now += timedelta(seconds=5)
        operator.scaling.measured(KEY, PoolSignals(members={"m": operator.measured("m", 200.0)}))
    assert operator.marked == []
    assert operator.status("m").history == history


def test_tokens_of_a_language_model_are_in_its_status_also_after_a_restart() -> None:
    operator = Operator((model("m", modelFormat={"name": "huggingface"}),))
    generating = replace(operator.measured("m", 2.0), tokens=84.4, at=NOON)
    for tokens, requested in ((84.4, [KEY]), (85.0, []), (0.0, [KEY])):
        operator.scaling.measured(KEY, PoolSignals(members={"m": replace(generating, tokens=tokens)}))
        assert operator.marked == requested
        if requested:
            operator.reconciled()
    (column,) = [column for column in DEFINITIONS[0].columns if column.name == "Tokens/s"]
    assert shown(operator, column) == "0"
    operator.scaling.measured(KEY, PoolSignals(members={"m": generating}))
    operator.reconciled()
    assert shown(operator, column) == "84"
    operator.start()
    assert shown(operator, column) == "84"


def shown(operator: Operator, column: Column) -> str:
    """Return the text in a column of the one model."""
    status = operator.snapshot.statuses["InferenceModel default/m"]
    return cell({"status": status.model_dump(mode="json", by_alias=True, exclude_none=True)}, column, NOON)


def test_a_window_that_is_free_is_no_change_by_itself() -> None:
    operator = Operator((model("m", maxReplicas=4, batching={}),))
    operator.under({"m": 5.0}, 10)
    assert operator.status("m").message.startswith("Stays at 1 replica")
    assert operator.status("m").history == ()


def test_a_new_process_goes_on_with_what_its_predecessor_decided() -> None:
    operator = Operator((model("m", maxReplicas=4),))
    operator.under({"m": 400.0}, 60)
    replicas, history = operator.replicas("m"), operator.status("m").history
    operator.start()
    assert operator.replicas("m") == replicas
    operator.under({"m": 1.0}, 120)  # less than a stabilisation window
    assert operator.replicas("m") == replicas
    assert operator.status("m").history == history


def test_what_cannot_be_measured_takes_nothing_away_and_says_so() -> None:
    operator = Operator((model("m", maxReplicas=4),))
    operator.under({"m": 400.0}, 60)
    replicas = operator.replicas("m")
    for _ in range(200):
        operator.now += timedelta(seconds=5)
        operator.scaling.measured(KEY, PoolSignals(error="Prometheus http://x answers 503"))
    operator.reconciled()
    assert operator.replicas("m") == replicas
    assert operator.status("m").reason == "NoSignals"
    assert "answers 503" in operator.status("m").message


def test_why_nothing_is_recorded_is_reported_at_once_but_for_its_numbers() -> None:
    operator = Operator((model("m", maxReplicas=4),))
    marked = []
    for error in ("", "", "values are 61 s old", "values are 66 s old", "Prometheus http://x answers 503"):
        operator.now += timedelta(seconds=5)
        operator.scaling.measured(KEY, PoolSignals(error=error))
        marked.append(bool(operator.marked))
        operator.reconciled()
    assert marked == [True, False, True, False, True]
    assert "answers 503" in operator.status("m").message


def test_a_query_that_cannot_be_had_is_reported() -> None:
    query = {"name": "backlog", "query": "nobody_exports_this", "target": 5}
    operator = Operator((model("m", maxReplicas=4, scaling={"targets": {"queries": [query]}}),))
    operator.now += timedelta(seconds=5)
    error = {("m", "backlog"): "Prometheus has no value for it"}
    operator.scaling.measured(KEY, PoolSignals({"m": operator.measured("m", 1.0)}, query_errors=error))
    operator.reconciled()
    assert "query backlog cannot be used: Prometheus has no value for it" in operator.status("m").message


def test_a_query_decides() -> None:
    query = {"name": "backlog", "query": "sum(backlog)", "target": 10}
    operator = Operator((model("m", maxReplicas=4, scaling={"targets": {"queries": [query]}}),))
    operator.now += timedelta(seconds=5)
    signals = PoolSignals({"m": operator.measured("m", 1.0)}, queries={("m", "backlog"): 25.0})
    operator.scaling.measured(KEY, signals)
    operator.reconciled()
    assert operator.replicas("m") == 3
    assert "backlog" in operator.status("m").metric


def test_out_of_memory_is_retried_only_with_another_footprint() -> None:
    batched = {"batching": {}, "maxBatchSize": 8, "scaling": {}, "instances": 1}
    operator = Operator((declared.model("m", memory=4, **batched),))
    for _ in range(2):
        operator.now += timedelta(seconds=5)
        failing = replace(operator.measured("m", 10.0), out_of_memory=0.2)
        operator.scaling.measured(KEY, PoolSignals(members={"m": failing}))
        operator.reconciled()
    reported = operator.status("m")
    assert (reported.max_batch_size, reported.out_of_memory.footprint) == (4, "gpuMemory 4Gi")
    assert reported.out_of_memory.gpu_memory == 80 << 30
    operator.start()
    operator.under({"m": 10.0}, 60)
    assert operator.status("m").max_batch_size == 4
    assert operator.status("m").out_of_memory == reported.out_of_memory
    edited = declared.model("m", memory=8, **batched)
    operator.snapshot = replace(operator.snapshot, resources=(declared.pool(), edited))
    operator.reconciled()
    operator.under({"m": 10.0}, 60)
    assert operator.status("m").max_batch_size is None
    assert operator.status("m").out_of_memory is None
    assert "is tried again" in operator.status("m").history[0].message


def test_what_goes_to_zero_wakes_for_waiting_requests() -> None:
    operator = Operator((model("m", minReplicas=0, maxReplicas=2, scaling={"idleTimeout": "1m"}),))
    assert operator.replicas("m") == 0
    operator.holding = Holding({"m": 1}, "")
    operator.reconciled()  # who waits marks the pool
    assert operator.replicas("m") == 1
    operator.holding = Holding(error="")
    operator.under({"m": 1.0}, 30)
    operator.under({"m": 0.0}, 1200)
    assert operator.replicas("m") == 0


def test_nothing_goes_to_zero_where_no_one_would_hold_its_requests() -> None:
    operator = Operator((model("m", minReplicas=0, scaling={"idleTimeout": "1m"}),))
    operator.holding = Holding({"m": 1})
    operator.reconciled()
    operator.holding = Holding(error="no Pod of its activator is ready: container activator: ImagePullBackOff")
    operator.under({"m": 0.0}, 1200)
    assert operator.replicas("m") == 1
    reported = operator.status("m").message
    assert "it does not go to zero: no Pod of its activator is ready: container activator: ImagePullBackOff" in reported


def test_who_waits_while_an_operator_starts_is_heard() -> None:
    operator = Operator((model("m", minReplicas=0),))
    operator.holding = Holding({"m": 3}, "")
    operator.start()
    operator.reconciled()
    assert operator.replicas("m") == 1


def test_a_schedule_holds_at_its_hours_without_any_request() -> None:
    office = {"name": "office", "start": "13:00", "end": "14:00", "minReplicas": 3}
    operator = Operator((model("m", maxReplicas=4, scaling={"schedules": [office]}),))
    operator.under({"m": 1.0}, 60)
    assert operator.replicas("m") == 1
    operator.now = NOON + timedelta(hours=1)
    operator.under({"m": 1.0}, 10)
    assert operator.replicas("m") == 3


def test_an_ensemble_gets_replicas_and_its_slowest_model_instances() -> None:
    fast, slow = (declared.model(name, memory=4, maxBatchSize=8) for name in ("fast", "slow"))
    full = declared.ensemble("e", "fast", "slow", slo={"latency": {"p99": "300ms"}}, maxReplicas=3)
    operator = Operator((fast, slow, full))
    operator.under({"e": 400.0, "fast": 10.0, "slow": 400.0}, 60)
    assert operator.status("slow").instances > 1
    assert operator.status("fast").instances == 1
    assert operator.replicas("fast") == operator.replicas("slow") == operator.replicas("e", "Ensemble")


def test_estimates_are_exported_and_service_times_are_in_the_status() -> None:
    stages = (declared.model(name, memory=4, maxBatchSize=8) for name in ("fast", "slow"))
    full = declared.ensemble("e", "fast", "slow", slo={"latency": {"p99": "300ms"}})
    operator = Operator((model("m", maxReplicas=4, modelName="M", instances=1), *stages, full))
    operator.under({"m": 100.0, "e": 20.0, "fast": 20.0, "slow": 20.0}, 120)
    reported = gauges(operator)
    assert reported["argosy_scaling_expected_requests_per_second", "m"] == pytest.approx(100, rel=0.05)
    holds = reported["argosy_scaling_replica_requests_per_second", "m"]
    assert holds > 100
    assert f"holds {holds:.3g}/s at 85%" in operator.status("m").message
    # Executions take 8 ms and 4 ms for each row, and had a row and a third: larger ones were not measured.
    fixed, row = (reported[f"argosy_scaling_execution_{part}_seconds", "m"] for part in ("fixed", "row"))
    assert fixed + 4 / 3 * row == pytest.approx(0.0133, rel=0.05)
    assert reported["argosy_scaling_execution_contention", "m"] >= 0
    assert reported["argosy_scaling_expected_requests_per_second", "slow"] == pytest.approx(20, rel=0.05)
    assert operator.status("m").estimate.startswith(
        f"an execution takes {1000 * fixed:.3g} ms and {1000 * row:.3g} ms for"
    )
    assert operator.status("slow").estimate


def test_what_is_not_measured_any_more_is_not_reckoned_with() -> None:
    operator = Operator((model("m", maxReplicas=4),))
    operator.under({"m": 100.0}, 60)
    for _ in range(20):
        operator.now += timedelta(seconds=5)
        operator.scaling.measured(KEY, PoolSignals(error="Prometheus http://x answers 503"))
    names = {name for name, _ in gauges(operator)}
    assert names == {f"argosy_scaling_execution_{part}" for part in ("fixed_seconds", "row_seconds", "contention")}


def gauges(operator: Operator) -> dict[tuple[str, str], float]:
    """Return what scaling exports of its estimates, by the gauge and the resource."""
    samples = (sample for family in EstimateMetrics(operator.scaling.estimated).collect() for sample in family.samples)
    return {(sample.name, sample.labels["name"]): sample.value for sample in samples}


def test_one_of_two_models_gets_the_last_gpu_and_the_other_hears_why() -> None:
    low, high = model("low", maxReplicas=4, instances=1), model("high", maxReplicas=4, instances=1, priority=10)
    operator = Operator((low, high))
    operator.under({"low": 400.0, "high": 400.0}, 120)
    assert operator.replicas("high") > operator.replicas("low")
    assert operator.replicas("low") >= 1
    assert operator.replicas("high") + operator.replicas("low") == 4
    for _ in range(3):
        reported = operator.status("low")
        assert reported.reason == "LimitedByCapacity"
        assert "gives way to high, whose priority is 10 and not 0: low needs 1 GPU" in reported.limited_by
        assert reported.message.endswith(f"; {reported.limited_by}.")
        operator.under({"low": 400.0, "high": 400.0}, 120)


def test_what_is_missing_is_reported_again_as_soon_as_it_is_something_else() -> None:
    low, high = model("low", maxReplicas=4, instances=1), model("high", maxReplicas=4, instances=1, priority=10)
    operator = Operator((low, high))
    operator.under({"low": 400.0, "high": 1.0}, 300)
    assert "high" not in operator.status("low").limited_by
    operator.under({"low": 400.0, "high": 400.0}, 30)
    assert "gives way to high" in operator.status("low").message


def test_a_pool_that_is_forgotten_is_decided_on_no_more() -> None:
    operator = Operator((model("m", maxReplicas=4),))
    operator.scaling.forget(KEY)
    operator.scaling.measured(KEY, PoolSignals(members={"m": operator.measured("m", 400.0)}))
    assert operator.marked == []


async def test_what_cannot_be_decided_leaves_the_last_decisions(monkeypatch: pytest.MonkeyPatch, caplog: Any) -> None:
    operator = Operator((model("m", maxReplicas=4),))
    operator.under({"m": 400.0}, 30)
    replicas = operator.replicas("m")
    assert replicas > 1

    def fails(*_: Any) -> Any:
        raise OverflowError("too large")

    monkeypatch.setattr(scaling, "decide_pool", fails)
    operator.scaling.measured(KEY, PoolSignals())
    await operator.scaling.heard(KEY, PoolSignals())
    operator.holding = Holding({"m": 1}, "")
    operator.reconciled()
    assert operator.replicas("m") == replicas
    assert caplog.text.count("pool default/p: nothing can be decided") >= 3


async def test_a_decision_on_a_thread_gives_way_to_one_that_was_made_meanwhile() -> None:
    operator = Operator((model("m", minReplicas=0, maxReplicas=4),))
    operator.now += timedelta(seconds=5)
    hearing = asyncio.create_task(operator.scaling.heard(KEY, PoolSignals()))
    await asyncio.sleep(0)  # it is on its thread by now, or about to be
    operator.holding = Holding({"m": 1}, "")
    operator.reconciled()
    await hearing
    operator.reconciled()
    assert operator.replicas("m") == 1  # who waits is not forgotten


async def test_what_is_heard_is_decided_and_asks_for_a_reconcile() -> None:
    operator = Operator((model("m", maxReplicas=4),))
    operator.now += timedelta(seconds=5)
    await operator.scaling.heard(KEY, PoolSignals(members={"m": operator.measured("m", 400.0)}))
    assert operator.marked == [KEY]
    operator.reconciled()
    assert operator.replicas("m") > 1


LOW, HIGH = {"name": "low", "maxConcurrency": 4}, {"name": "high"}


def read(operator: Operator, in_flight: float, **rates: float) -> Any:
    """Read a model whose variants have servers of their own once, and return its status."""
    operator.now += timedelta(seconds=5)
    status: Any = operator.snapshot.statuses["InferenceModel default/m"]
    replicas = {variant.name: variant.replicas for variant in status.variants}
    parts = {
        f"m--{name}": measured(rate, Allocation(max(1, replicas[name])), operator.now) for name, rate in rates.items()
    }
    variants = [VariantSignals(f"m--{name}", ready=count) for name, count in replicas.items()]
    own = Signals(
        operator.now, 15.0, servers=2, variants=(replace(variants[0], in_flight=in_flight, requests=9.0), *variants[1:])
    )
    operator.scaling.measured(KEY, PoolSignals(members=parts | {"m": own}))
    if operator.marked:
        operator.reconciled()
    return operator.snapshot.statuses["InferenceModel default/m"]


def test_variants_with_servers_of_their_own_are_scaled_apart_and_a_restart_changes_neither() -> None:
    routing = {"routing": {"placement": "Separate"}, "variants": [LOW, HIGH], "maxReplicas": 2}
    operator = Operator((model("m", **routing),))
    for _ in range(12):
        status = read(operator, 3, low=300.0, high=0.0)
    assert [(v.replicas, v.scaling.replicas, v.scaling.reason) for v in status.variants] == [
        (2, 2, status.variants[0].scaling.reason),
        (1, 1, status.variants[1].scaling.reason),
    ]
    assert (status.scaling.replicas, status.replicas, status.regime.variant) == (2, 2, "low")
    assert [len(v.scaling.history) for v in status.variants] == [1, 0]
    assert status.condition(ConditionType.SCALING).message.startswith("variant low: ")
    status = read(operator, 9, low=300.0, high=0.0)
    since = operator.now.strftime("%Y-%m-%dT%H:%M:%SZ")
    assert (status.regime.variant, status.regime.since) == ("high", since)
    operator.start()
    status = operator.snapshot.statuses["InferenceModel default/m"]
    assert (status.regime.variant, status.regime.since) == ("high", since)
    assert [v.replicas for v in status.variants] == [2, 1]
