"""From declared resources and measurements to subjects."""

from collections.abc import Mapping

from tests.operator.autoscaling.bottlenecks.inputs import measured
from tests.operator.planning.declared import TENSOR, ensemble, model

from argosy.autoscaling.bottlenecks.subjects import Lever, subjects
from argosy.autoscaling.metrics.signals import GpuSignals, PoolSignals
from argosy.planning.facts import CurrentServer

BATCHING = {"maxBatchSize": 8, "batching": {"maxQueueDelayMicroseconds": 2000}}


def signals(*names: str, gpus: Mapping[tuple[str, int], GpuSignals] | None = None) -> PoolSignals:
    """Return the same signals for all these members."""
    return PoolSignals(members={name: measured() for name in names}, gpus=gpus or {})


def test_a_model_is_its_own_stage_with_what_its_spec_says() -> None:
    declared = model("bert", instances=3, slo={"latency": {"p99": "200ms"}}, **BATCHING)
    subject = subjects([declared], signals("bert"), [], {"bert": [Lever.INSTANCES]})["bert"]
    (stage,) = subject.stages
    assert (stage.name, stage.window_s, stage.instances, stage.signals.max_batch) == ("bert", 0.002, 3, 8)
    assert stage.levers == {Lever.INSTANCES}
    assert subject.latency == {"p99": 0.2}
    assert not subject.is_ensemble


def test_without_batching_there_is_no_window() -> None:
    (stage,) = subjects([model("bert")], signals("bert"), [])["bert"].stages
    assert stage.window_s is None


def test_its_gpus_are_those_of_its_servers_by_their_own_indexes() -> None:
    servers = [
        CurrentServer("s-0", "n", (2, 3), {"bert": (3,)}),
        CurrentServer("s-1", "n", (4,), {"bert": (4,), "other": (4,)}),
        CurrentServer("s-2", "n", (5,), {"other": (5,)}),
        CurrentServer("s-3", "n", (), {"bert": ()}),
    ]
    slots = [(server.name, index) for server in servers for index in range(len(server.gpus))]
    gpus = {slot: GpuSignals(utilization=number / 10) for number, slot in enumerate(slots)}
    (stage,) = subjects([model("bert")], signals("bert", gpus=gpus), servers)["bert"].stages
    assert stage.gpus == (gpus["s-0", 1], gpus["s-1", 0])
    assert stage.replicas == 3


def test_an_ensembles_stages_come_after_those_that_they_read() -> None:
    spec = {
        "inputs": [{"name": "IN", **TENSOR}],
        "outputs": [{"name": "OUT", **TENSOR}],
        "steps": [
            {"model": "join", "inputs": {"X": "L", "Z": "R"}, "outputs": {"Y": "OUT"}},
            {"model": "left", "inputs": {"X": "A"}, "outputs": {"Y": "L"}},
            {"model": "right", "inputs": {"X": "A"}, "outputs": {"Y": "R"}},
            {"model": "first", "inputs": {"X": "IN"}, "outputs": {"Y": "A"}},
        ],
    }
    names = ("join", "left", "right", "first")
    members = [*(model(name) for name in names), ensemble("both", **spec)]
    stages = subjects(members, signals("both", *names), [])["both"].stages
    assert [(stage.name, stage.reads) for stage in stages] == [
        ("first", ()),
        ("left", (0,)),
        ("right", (0,)),
        ("join", (1, 2)),
    ]


def test_an_inner_ensemble_stands_for_its_own_steps() -> None:
    members = [*(model(name) for name in "abcd"), ensemble("inner", "b", "c"), ensemble("outer", "a", "inner", "d")]
    all_subjects = subjects(members, signals("a", "b", "c", "d", "inner", "outer"), [])
    assert [(stage.name, stage.reads) for stage in all_subjects["outer"].stages] == [
        ("a", ()),
        ("b", (0,)),
        ("c", (1,)),
        ("d", (2,)),
    ]


def test_an_ensemble_that_is_measured_in_part_is_no_subject() -> None:
    members = [model("a"), model("b"), ensemble("both", "a", "b")]
    assert set(subjects(members, signals("a", "both"), [])) == {"a"}
    assert set(subjects(members, signals("a", "b"), [])) == {"a", "b"}
