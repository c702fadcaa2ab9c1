"""No setting is passed over in silence: those without effect are named, and those that decide."""

from typing import Any

import pytest
from tests.operator.planning.declared import pool
from tests.operator.status.rounds import (
    condition_of,
    decided_round,
    described,
    ensemble,
    loaded,
    model,
    of_ensemble,
    of_model,
    of_pool,
    report,
)

from argosy.cli.rollout.member import Member
from argosy.planning.rollouts.member import is_staged
from argosy.status.findings.unsupported import unused_ensemble_settings, unused_model_settings
from argosy.status.statuses import statuses

UNPROVEN = {"analysis": {"confidence": "99%"}, "sticky": [{"header": "x-user"}], "paused": True}
"""A rollout that says how a version is proven, and proves none."""


def test_every_setting_without_effect_is_named() -> None:
    engine = {"builder": "onnxruntime", "precision": "int8", "accuracy": {"dataUri": "s3://b/d", "min": 0.9}}
    status = of_model(
        statuses(
            decided_round(
                [
                    pool(storage={"engineCache": {"storageUri": "s3://b/e"}}),
                    model(
                        engine=engine,
                        rateLimiter={"priority": 2},
                    ),
                ],
                [report("p-0", loaded("m"))],
            )
        )
    )
    assert described(status, "EngineReady") == ("False", "BuildPending")
    assert described(status, "AccuracyVerified") == ("False", "AccuracyPending")
    assert described(status, "Ready") == ("False", "Progressing")
    assert described(status, "Valid") == ("True", "SettingWithoutEffect")
    assert "spec.rateLimiter" in condition_of(status, "Valid").message


@pytest.mark.parametrize("runtime", ["argosy", "triton"])
def test_a_limit_of_an_ensembles_steps_acts_on_both_runtimes(runtime: str) -> None:
    resources = [pool(runtime={"name": runtime}), model("x"), ensemble("e", {"model": "x"}, maxInflightRequests=4)]
    status = of_ensemble(statuses(decided_round(resources, [report("p-0", loaded("x"), loaded("e"))])))
    assert "spec.maxInflightRequests" not in condition_of(status, "Valid").message


def test_what_says_how_a_version_is_proven_is_reported_where_none_is() -> None:
    of_model = unused_model_settings(model("m", rollout=UNPROVEN), pool())
    of_ensemble = unused_ensemble_settings(ensemble("e", {"model": "m"}, rollout=UNPROVEN), pool())
    for field in UNPROVEN:
        assert f"spec.rollout.{field}: " in of_model
        assert f"spec.rollout.{field}: " in of_ensemble
    for used in ({**UNPROVEN, "shadow": {"traffic": "10%"}}, {**UNPROVEN, "steps": [{"traffic": "10%"}]}):
        assert unused_model_settings(model("m", rollout=used), pool()) == ""
    stored_defaults = {"analysis": {"confidence": "95%"}, "sticky": [], "paused": False, "strategy": "Surge"}
    assert unused_model_settings(model("m", rollout=stored_defaults), pool()) == ""


@pytest.mark.parametrize(
    ("counts", "field"),
    [
        ({"replicas": 2, "minReplicas": 3}, "spec.minReplicas"),
        ({"replicas": 0, "minReplicas": 1}, "spec.minReplicas"),
        ({"replicas": 5, "maxReplicas": 4}, "spec.maxReplicas"),
        ({"replicas": 3, "minReplicas": 3, "maxReplicas": 3}, ""),
        ({"minReplicas": 3}, ""),
    ],
)
def test_a_bound_that_the_number_of_replicas_is_outside_of_is_named(counts: dict[str, int], field: str) -> None:
    for message in (
        unused_model_settings(model("m", **counts), pool()),
        unused_ensemble_settings(ensemble("e", {"model": "m"}, **counts), pool()),
    ):
        assert message.startswith(
            f"{field}: spec.replicas is outside of it, and decides while it is set" if field else ""
        )
        assert bool(message) is bool(field)


@pytest.mark.parametrize("rollout", [{}, {"steps": [{"traffic": "10%"}]}, {"shadow": {"traffic": "10%"}}, UNPROVEN])
def test_commands_and_the_operator_agree_on_what_is_proven(rollout: dict[str, Any]) -> None:
    spec = {"rollout": rollout}
    requested = Member("InferenceModel", "m", "default", spec).proves
    assert requested is is_staged(model("m", **spec).spec.rollout)


def test_a_chat_that_no_server_answers_is_reported() -> None:
    text = {"dataType": "TYPE_STRING", "dims": [1]}
    chat = {
        "inputs": [{"name": "q", **text}],
        "outputs": [{"name": "a", **text}],
        "chat": {"prompt": "q", "text": "a"},
    }
    for runtime, reason in (("argosy", "Valid"), ("triton", "SettingWithoutEffect")):
        resources = [pool(runtime={"name": runtime}), model(**chat)]
        status = of_model(statuses(decided_round(resources, [report("p-0", loaded("m"))])))
        assert described(status, "Valid") == ("True", reason)
        assert ("spec.chat" in condition_of(status, "Valid").message) == (runtime == "triton")


@pytest.mark.parametrize("runtime", ["argosy", "triton"])
def test_a_pools_settings_without_effect_are_named(runtime: str) -> None:
    settings: dict[str, Any] = {
        "packing": {"consolidate": "Off", "consolidateAfter": "5m"},
        "rateLimit": {},
        "cache": {"size": "1Gi"},
        "runtime": {"name": runtime},
    }
    status = of_pool(statuses(decided_round([pool(**settings)])))
    assert described(status, "Valid") == ("True", "SettingWithoutEffect")
    assert "spec.packing.consolidateAfter" in condition_of(status, "Valid").message
    assert "spec.rateLimit" not in condition_of(status, "Valid").message
    assert "spec.cache" not in condition_of(status, "Valid").message


def test_a_cached_model_in_a_pool_without_a_cache_is_reported() -> None:
    cached = model(config={"response_cache": {"enable": True}})
    for spec, reason in (({}, "SettingWithoutEffect"), ({"cache": {"size": "1Mi"}}, "Valid")):
        valid = condition_of(of_model(statuses(decided_round([pool(**spec), cached]))), "Valid")
        assert valid.reason == reason
        assert ("spec.config.response_cache: answers are not kept" in valid.message) == (reason != "Valid")


def test_a_rate_limiter_that_no_server_heeds_is_reported() -> None:
    limited = model(rateLimiter={"priority": 2})
    triton = {"runtime": {"name": "triton"}}
    limits = {"rateLimit": {"resources": [{"name": "r", "count": 1}]}}
    for spec, reason in (
        ({}, "SettingWithoutEffect"),
        (triton, "SettingWithoutEffect"),
        (limits, "Valid"),
        ({**triton, **limits}, "Valid"),
    ):
        valid = condition_of(of_model(statuses(decided_round([pool(**spec), limited]))), "Valid")
        assert valid.reason == reason
        assert ("spec.rateLimiter: instances run whenever they are free" in valid.message) == (reason != "Valid")


def test_set_replicas_decide_and_the_status_names_the_field() -> None:
    resources = [
        pool(replicas=2, minServers=1, maxServers=1),
        model(replicas=2, minReplicas=1, maxReplicas=1),
        model("off", replicas=0, minReplicas=2),
        model("step", minReplicas=0),
        ensemble("e", {"model": "step"}, replicas=1, minReplicas=0),
    ]
    result = statuses(decided_round(resources))
    status = of_model(result)
    assert status.replicas == 2
    assert status.scaling is not None
    assert (status.scaling.desired, status.scaling.reason) == (2, "FixedReplicas")
    assert status.scaling.message.startswith("spec.replicas is 2, and decides")
    assert described(status, "Scaling") == ("True", "FixedReplicas")
    off = of_model(result, "off")
    assert off.replicas == 0
    assert condition_of(off, "Placed").message == "spec.replicas is 0, so it has no replica"
    assert of_ensemble(result).replicas == 1
    assert condition_of(of_ensemble(result), "Scaling").message.startswith("spec.replicas is 1, and decides")
    assert of_pool(result).replicas == 2
    assert condition_of(of_pool(result), "Scaling").message.startswith("spec.replicas is 2, and decides")


def test_unset_replicas_leave_the_bounds_to_decide() -> None:
    result = statuses(decided_round([pool(minServers=1), model(minReplicas=2)]))
    assert of_model(result).replicas == 2
    assert condition_of(of_model(result), "Scaling").message.startswith("replicas stay at minReplicas (2)")
    assert "at least minServers (1)" in condition_of(of_pool(result), "Scaling").message


def test_a_pool_of_fixed_servers_says_which_field_holds_it() -> None:
    status = of_model(statuses(decided_round([pool(replicas=1, maxServers=5), model(minReplicas=2)])))
    message = condition_of(status, "Placed").message
    assert "the pool may have 1 server. Raise its maxServers (or replicas, where that is set)" in message
