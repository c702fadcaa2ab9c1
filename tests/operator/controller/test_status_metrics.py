"""What statuses say of scaling, as Prometheus reads it."""

import pytest
from prometheus_client.parser import text_string_to_metric_families
from tests.operator.planning.declared import ensemble, model, pool

from argosy.api import Condition, ConditionStatus, ConditionType, Ensemble, InferenceModel, Reason, Resource
from argosy.api.rolloutstatus import RolloutStatus
from argosy.api.scalingstatus import BottleneckStatus, ScalingStatus
from argosy.api.status import EnsembleStatus, InferenceModelStatus
from argosy.controller.metrics.metrics import Metrics
from argosy.controller.resources.parsed_body import ParsedBody
from argosy.controller.resources.store import Store

WHO = {"namespace": "default", "pool": "p", "kind": "InferenceModel", "name": "bert", "model": "Bert_v2"}


def without_signals() -> Condition:
    return Condition(
        type=ConditionType.SCALING,
        status=ConditionStatus.FALSE,
        reason=Reason.NO_SIGNALS,
        message="Prometheus is down",
        last_transition_time="2026-11-22T12:00:00Z",
        observed_generation=1,
    )


def exported(*resources: Resource) -> dict[tuple[str, tuple[tuple[str, str], ...]], float]:
    """Return, by name and labels, what an operator with these resources exports of scaling."""
    store, metrics = Store(), Metrics()
    metrics.collect(store.members)
    for resource in resources:
        store.put(ParsedBody(resource, valid=True))
    families = text_string_to_metric_families(metrics.text().decode())
    samples = [sample for family in families for sample in family.samples]
    return {(sample.name, tuple(sorted(sample.labels.items()))): sample.value for sample in samples}


def of(name: str, **labels: str) -> tuple[str, tuple[tuple[str, str], ...]]:
    return name, tuple(sorted({**WHO, **labels}.items()))


def bert(**status: object) -> InferenceModel:
    declared = model("bert", modelName="Bert_v2")
    assert isinstance(declared, InferenceModel)
    return declared.model_copy(update={"status": InferenceModelStatus(**status)})


def test_replicas_instances_and_what_decided_are_identified_by_resource() -> None:
    scaling = ScalingStatus(
        replicas=2,
        desired=4,
        instances=3,
        metric="latency p99",
        observed=0.3,
        target=0.2,
        last_scale_time="2026-11-22T12:00:00Z",
    )
    result = exported(pool(), bert(scaling=scaling))
    assert result[of("argosy_scaling_replicas")] == 2
    assert result[of("argosy_scaling_desired_replicas")] == 4
    assert result[of("argosy_scaling_instances")] == 3
    assert result[of("argosy_scaling_last_change_timestamp_seconds")] == 1795348800
    assert result[of("argosy_scaling_observed", metric="latency p99")] == 0.3
    assert result[of("argosy_scaling_target", metric="latency p99")] == 0.2


@pytest.mark.parametrize("time", ["yesterday", "2026-11-22T12:00:00"])
def test_an_invalid_time_and_what_is_unknown_are_left_out(time: str) -> None:
    names = {name for name, _ in exported(bert(scaling=ScalingStatus(last_scale_time=time)), model("new"))}
    assert "argosy_scaling_replicas" in names
    assert not names & {"argosy_scaling_last_change_timestamp_seconds", "argosy_scaling_observed", "argosy_bottleneck"}


def test_bottlenecks_and_missing_signals_are_reported() -> None:
    neck = BottleneckStatus(stage="bert", kind="StarvedStage")
    result = exported(bert(bottleneck=neck, conditions=(without_signals(),)))
    assert result[of("argosy_bottleneck", bottleneck="StarvedStage", stage="bert")] == 1
    assert result[of("argosy_scaling_without_signals")] == 1


def test_an_ensembles_models_are_identified_by_what_clients_call_them() -> None:
    both = ensemble("both", "bert", "other", "bert", modelName="Both")
    assert isinstance(both, Ensemble)
    both = both.model_copy(update={"status": EnsembleStatus()})
    steps = {labels for name, labels in exported(both, bert(), model("other")) if name == "argosy_ensemble_step"}
    assert {dict(labels)["model"] for labels in steps} == {"Bert_v2", "other"}
    assert {dict(labels)["ensemble"] for labels in steps} == {"Both"}


def test_what_is_gone_is_reported_no_longer() -> None:
    store, metrics = Store(), Metrics()
    metrics.collect(store.members)
    resource = bert(scaling=ScalingStatus(replicas=1))
    resource = resource.model_copy(update={"metadata": resource.metadata.model_copy(update={"uid": "u"})})
    store.put(ParsedBody(resource, valid=True))
    assert b'name="bert"' in metrics.text()
    store.end(resource.identity, "u")
    assert b'name="bert"' not in metrics.text()


def test_the_rollout_of_a_model_is_identified_by_its_phase() -> None:
    rollout = RolloutStatus(phase="Stepping", waiting="Verdict", desired_traffic=50, traffic=48)
    result = exported(bert(rollout=rollout), model("other"))
    assert result[of("argosy_rollout_phase", phase="Stepping", waiting="Verdict")] == 1
    assert result[of("argosy_rollout_desired_traffic")] == 0.05
    assert result[of("argosy_rollout_traffic")] == 0.048
    assert len([name for name, _ in result if name.startswith("argosy_rollout_")]) == 3


def test_traffic_that_was_not_measured_is_left_out() -> None:
    names = {name for name, _ in exported(bert(rollout=RolloutStatus(phase="Held")))}
    assert "argosy_rollout_phase" in names
    assert not names & {"argosy_rollout_traffic", "argosy_rollout_desired_traffic"}
