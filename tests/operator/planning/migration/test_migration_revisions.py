"""Revisions of models: what a server has loaded, when it serves what is declared, and reload keys."""

from dataclasses import replace
from typing import Any

import pytest
from tests.operator.planning.declared import ensemble, model
from tests.operator.planning.migration.pool_states import KEYS, on, server

from argosy.api import Ensemble, InferenceModel
from argosy.api.servingpool import RuntimeName
from argosy.planning.migration.revisions import ModelRevision, ReloadKeys, RevisionKeys
from argosy.render.keys import RenderedKeys
from argosy_agent.contract import VersionConfig, VersionSource

ONE, TWO = VersionSource("s3://b/m/1"), VersionSource("s3://b/m/2")
DECLARED = ModelRevision("m", {1: ONE}, config_key="k")


@pytest.mark.parametrize(
    ("loaded", "serves"),
    [
        (ModelRevision("m", {1: ONE}, config_key="k"), True),
        (ModelRevision("m", {1: ONE, 2: TWO}, config_key="k"), True),
        (ModelRevision("m", {1: VersionSource("s3://b/m/1", memory=5)}, config_key="k"), True),
        (ModelRevision("m", {2: TWO}, config_key="k"), False),
        (ModelRevision("m", {1: TWO}, config_key="k"), False),
        (ModelRevision("m", {1: ONE}, config_key="other"), False),
        (ModelRevision("m", {1: ONE}), False),
    ],
    ids=["alike", "another version too", "another size", "another version", "other files", "another key", "no key"],
)
def test_a_server_serves_what_is_declared(loaded: ModelRevision, serves: bool) -> None:
    assert loaded.serves(DECLARED) is serves


def test_an_ensemble_serves_with_the_steps_that_are_declared() -> None:
    declared = ModelRevision("e", {2: VersionSource()}, steps={"m": 1})
    assert declared.serves(declared)
    assert not ModelRevision("e", {2: VersionSource()}, steps={"m": 2}).serves(declared)
    assert not ModelRevision("e", {1: VersionSource()}, steps={"m": 1}).serves(declared)
    assert ModelRevision("e", {1: VersionSource(), 2: VersionSource()}, steps={"m": 1}).serves(declared)


def own(key: str, reload: str = "", **steps: int) -> VersionSource:
    """Return the source of a version with a configuration of its own."""
    return VersionSource(own=VersionConfig("", key, reload or key, steps))


def test_a_version_serves_by_its_own_configuration() -> None:
    declared = ModelRevision("m", {2: VersionSource()}, config_key="new", reload_key="new")
    assert ModelRevision("m", {1: VersionSource(), 2: own("new")}, config_key="old").serves(declared)
    assert not ModelRevision("m", {2: own("old")}, config_key="new").serves(declared)
    pinned = ModelRevision("e", {2: own("k", x=2)}, steps={"x": 2}, config_key="k")
    assert ModelRevision("e", {1: own("j", x=1), 2: own("k", x=2)}, steps={"x": 1}).serves(pinned)
    assert not ModelRevision("e", {2: own("k", x=1)}, steps={"x": 2}, config_key="k").serves(pinned)


def test_a_version_stays_loaded_while_its_configuration_does() -> None:
    loaded = ModelRevision("m", {1: VersionSource(), 2: own("b")}, config_key="a", reload_key="a")
    promoted = ModelRevision("m", {1: own("a"), 2: VersionSource()}, config_key="b", reload_key="b")
    assert promoted.stays_loaded(loaded)
    assert promoted.retains(loaded, 1)
    assert promoted.retains(loaded, 2)
    changed = ModelRevision("m", {1: own("a"), 2: VersionSource()}, config_key="c", reload_key="c")
    assert not changed.stays_loaded(loaded)
    assert (changed.retains(loaded, 1), changed.retains(loaded, 2)) == (True, False)
    assert not changed.retains(replace(loaded, gpus=(1,)), 1)
    assert not changed.retains(loaded, 3)


def test_an_ensemble_runs_the_steps_of_all_its_versions() -> None:
    revision = ModelRevision("e", {1: VersionSource(), 2: own("k", x=2, y=1)}, steps={"x": 1})
    assert revision.runs == {("x", 1), ("x", 2), ("y", 1)}
    assert revision.step_names == {"x", "y"}


def model_key(keys: ReloadKeys, gpu: int = 0, **spec: Any) -> RevisionKeys:
    m = model("m", **spec)
    assert isinstance(m, InferenceModel)
    return keys.of_model(m, on(m, gpu), server("p-0", on(m, gpu), gpus=(0, 1)))


def ensemble_key(keys: ReloadKeys, pin: int = 1, **spec: Any) -> RevisionKeys:
    e = ensemble("e", "m", **spec)
    assert isinstance(e, Ensemble)
    return keys.of_ensemble(e, {"m": pin})


@pytest.mark.parametrize("keys", [KEYS, RenderedKeys()], ids=["fake", "rendered"])
class TestReloadKeys:
    """The fake compares two revisions as the renderer does."""

    @pytest.mark.parametrize(
        "spec",
        [
            {"version": 2},
            {"storageUri": "s3://b/other"},
            {"memory": 30},
            {"minReplicas": 2},
            {"versionPolicy": {"latest": {"numVersions": 2}}},
        ],
    )
    def test_what_changes_no_configuration_keeps_the_key(self, keys: ReloadKeys, spec: dict[str, Any]) -> None:
        assert model_key(keys, **spec) == model_key(keys)

    @pytest.mark.parametrize(
        "spec", [{"maxBatchSize": 8}, {"instances": 2}, {"gpu": 1}, {"batching": {"maxQueueDelayMicroseconds": 9}}]
    )
    def test_another_configuration_has_another_key(self, keys: ReloadKeys, spec: dict[str, Any]) -> None:
        assert model_key(keys, **spec).config != model_key(keys).config

    @pytest.mark.parametrize("spec", [{"instances": 2}, {"batching": {"maxQueueDelayMicroseconds": 9}}])
    def test_what_changes_inplace_is_no_reload(self, keys: ReloadKeys, spec: dict[str, Any]) -> None:
        assert model_key(keys, **spec).reload == model_key(keys).reload

    @pytest.mark.parametrize("spec", [{"maxBatchSize": 8}, {"config": {"metric_tags": {"a": "b"}}}])
    def test_what_a_server_reads_while_it_loads_is_a_reload(self, keys: ReloadKeys, spec: dict[str, Any]) -> None:
        assert model_key(keys, **spec).reload != model_key(keys).reload

    def test_an_ensemble_of_other_versions_has_another_key(self, keys: ReloadKeys) -> None:
        assert ensemble_key(keys, version=2) == ensemble_key(keys)
        assert ensemble_key(keys, pin=2) != ensemble_key(keys)


def test_nvidia_s_server_changes_instances_inplace_but_not_batching() -> None:
    keys = RenderedKeys(runtime=RuntimeName.TRITON)
    assert model_key(keys, instances=2).reload == model_key(keys).reload
    assert model_key(keys, batching={"maxQueueDelayMicroseconds": 9}).reload != model_key(keys).reload


KEYED = ModelRevision("m", {1: ONE}, (0,), "r", config_key="c", instances=1)


@pytest.mark.parametrize(
    ("revision", "stays"),
    [
        (replace(KEYED, config_key="other", instances=3), True),
        (replace(KEYED, reload_key=""), True),
        (replace(KEYED, reload_key="other", config_key="other"), False),
        (replace(KEYED, config_key="other", gpus=(1,)), False),
        (replace(KEYED, reload_key="", config_key=""), False),
    ],
    ids=["another count", "one configuration", "another", "another GPU", "no keys"],
)
def test_what_stays_loaded_under_another_revision(revision: ModelRevision, stays: bool) -> None:
    assert revision.stays_loaded(KEYED) is stays


def test_without_any_key_nothing_is_recorded_to_stay() -> None:
    assert not ModelRevision("m", {1: ONE}).stays_loaded(ModelRevision("m", {1: ONE}))
