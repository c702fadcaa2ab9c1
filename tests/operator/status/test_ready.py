"""Ready: what serves as requested, and since when; what is not ready says why."""

from dataclasses import replace
from datetime import timedelta

from tests.operator.planning.declared import pool
from tests.operator.status.rounds import (
    FAILED,
    LATER,
    LOADING,
    READY,
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

from argosy.api.status import VersionState
from argosy.status.statuses import statuses
from argosy_agent.contract import FailureKind, LoadedModel


def test_a_version_tells_which_files_serve_and_where_servers_differ() -> None:
    resources = [pool(), model()]
    for digests in (("listing:a",), ("listing:a", "listing:b"), ("",)):
        reports = [report(f"p-{n}", replace(loaded("m"), digest=digest)) for n, digest in enumerate(digests)]
        status = of_model(statuses(decided_round(resources, reports)))
        assert status.versions[0].digests == tuple(filter(None, digests))


def test_a_model_that_is_loaded_everywhere_is_ready() -> None:
    status = of_model(statuses(decided_round([pool(), model()], [report("p-0", loaded("m"))])))
    kinds = [str(condition.type) for condition in status.conditions]
    assert len(kinds) == len(set(kinds))
    assert {kind: described(status, kind)[0] for kind in kinds} == {
        "Ready": "True",
        "Reconciling": "False",
        "Stalled": "False",
        "Valid": "True",
        "Placed": "True",
        "EngineReady": "True",
        "AccuracyVerified": "True",
        "Loaded": "True",
        "Available": "True",
        "Scaling": "True",
    }
    assert status.ready
    assert (status.replicas, status.available_replicas, status.active_version) == (1, 1, 1)
    assert (status.url, status.grpc_address) == ("http://p-0/v2/models/m", "p-0:8001")
    assert condition_of(status, "Placed").message == "p-0 on node a, GPU 0"
    assert [(p.server, p.node, p.gpus) for p in status.placement] == [("p-0", "a", (0,))]
    assert [(v.version, v.state, v.traffic_percent) for v in status.versions] == [(1, VersionState.SERVING, 100)]


def test_a_model_that_is_still_loading_reconciles() -> None:
    for reports in ([], [report("p-0", ready=False)], [report("p-0", loaded("m", state=LOADING))]):
        status = of_model(statuses(decided_round([pool(), model()], reports)))
        assert described(status, "Loaded") == ("False", "Loading")
        assert described(status, "Ready") == ("False", "Progressing")
        assert described(status, "Reconciling") == ("True", "Progressing")
        assert described(status, "Stalled")[0] == "False"
        assert "waiting for p-0" in condition_of(status, "Ready").message


def test_a_model_that_cannot_load_is_stalled_with_the_servers_words() -> None:
    reports = [report("p-0", loaded("m", state=FAILED, reason="no such file"))]
    status = of_model(statuses(decided_round([pool(), model()], reports)))
    assert described(status, "Loaded") == ("False", "LoadFailed")
    assert described(status, "Stalled") == ("True", "LoadFailed")
    assert "p-0: no such file" in condition_of(status, "Ready").message
    assert status.versions[0].state is VersionState.FAILED


def test_some_replicas_are_not_all() -> None:
    reports = [report("p-0", loaded("m")), report("p-1", loaded("m", state=LOADING))]
    status = of_model(statuses(decided_round([pool(), model(minReplicas=2)], reports)))
    assert described(status, "Loaded") == ("False", "PartiallyLoaded")
    assert (status.replicas, status.available_replicas, status.ready) == (2, 1, False)


def test_a_model_is_never_ready_while_it_rolls() -> None:
    resources = [pool(), model(version=2, generation=2)]
    old = of_model(statuses(decided_round(resources, [report("p-0", loaded("m", 1), loaded("m", 2, LOADING))])))
    assert not old.ready
    assert [(v.version, v.state, v.traffic_percent) for v in old.versions] == [
        (2, VersionState.LOADING, 0),
        (1, VersionState.SERVING, 100),
    ]
    assert old.active_version == 1
    both = of_model(statuses(decided_round(resources, [report("p-0", loaded("m", 1), loaded("m", 2))])))
    assert described(both, "Ready") == ("False", "RollingOut")
    assert described(both, "Reconciling") == ("True", "RollingOut")
    assert both.active_version == 2
    new = of_model(statuses(decided_round(resources, [report("p-0", loaded("m", 2))])))
    assert described(new, "Ready") == ("True", "Serving")
    assert new.observed_generation == 2


def test_versions_that_a_policy_or_an_ensemble_keeps_are_no_leftovers() -> None:
    both = [report("p-0", loaded("m", 1), loaded("m", 2), loaded("e"))]
    retained = model(version=2, versionPolicy={"latest": {"numVersions": 2}})
    assert of_model(statuses(decided_round([pool(), retained], both))).ready
    reserved = [pool(), model(version=2), ensemble("e", {"model": "m", "version": 1})]
    result = statuses(decided_round(reserved, both))
    assert of_model(result).ready
    assert [(s.model, s.version, s.state) for s in of_ensemble(result).steps] == [("m", 1, VersionState.SERVING)]


def test_a_model_is_not_ready_while_a_higher_version_answers_instead() -> None:
    back = model(version=1, versionPolicy={"latest": {"numVersions": 2}})
    both = [report("p-0", loaded("m", 1), loaded("m", 2))]
    status = of_model(statuses(decided_round([pool(), back], both)))
    assert status.active_version == 2
    assert described(status, "Ready") == ("False", "RollingOut")
    settled = of_model(statuses(decided_round([pool(), back], [report("p-0", loaded("m", 1))])))
    assert (settled.ready, settled.active_version) == (True, 1)


def test_a_version_has_the_traffic_of_servers_that_requests_reach() -> None:
    unreached = replace(report("p-1", loaded("m", 2)), takes_requests=False)
    resources = [pool(), model(version=2, minReplicas=2)]
    status = of_model(statuses(decided_round(resources, [report("p-0", loaded("m", 1)), unreached])))
    assert {version.version: version.traffic_percent for version in status.versions} == {1: 100, 2: 0}


def test_a_time_changes_only_when_the_status_flips() -> None:
    resources = [pool(), model()]
    first = statuses(decided_round(resources, [report("p-0", loaded("m", state=LOADING))]))
    second = statuses(decided_round(resources, [report("p-0")], first, now=LATER))
    assert condition_of(of_model(second), "Ready").last_transition_time == "2026-01-01T12:00:00Z"
    third = statuses(decided_round(resources, [report("p-0", loaded("m"))], second, now=LATER))
    assert condition_of(of_model(third), "Ready").last_transition_time == "2026-01-01T12:05:00Z"
    assert condition_of(of_model(third), "Placed").last_transition_time == "2026-01-01T12:00:00Z"
    settled = statuses(decided_round(resources, [report("p-0", loaded("m"))], third, now=LATER + timedelta(hours=1)))
    assert settled == third


def test_an_ensemble_is_ready_when_it_is_loaded_alongside_its_steps() -> None:
    resources = [pool(), model("x"), model("y"), ensemble("e", {"model": "x"}, {"model": "y"})]
    models = [loaded("x"), loaded("y")]
    waiting = of_ensemble(statuses(decided_round(resources, [report("p-0", *models)])))
    assert described(waiting, "Ready") == ("False", "Progressing")
    done = of_ensemble(statuses(decided_round(resources, [report("p-0", *models, loaded("e"))])))
    assert done.ready
    assert (done.replicas, done.available_replicas, done.url) == (1, 1, "http://p-0/v2/models/e")
    assert [(step.model, step.state) for step in done.steps] == [
        ("x", VersionState.SERVING),
        ("y", VersionState.SERVING),
    ]


def test_a_pool_shows_its_servers_and_counts_its_gpus() -> None:
    resources = [pool(), model("x"), model("y", footprint={"gpus": 1}), model("z", footprint={"device": "CPU"})]
    status = of_pool(statuses(decided_round(resources, [report("p-0"), report("p-1", ready=False)])))
    assert status.gpus is not None
    assert (status.gpus.total, status.gpus.used, status.gpus.free, status.gpus.one_per_model) == (2, 2, 0, 3)
    seen = {server.name: (server.node, server.gpus, server.models, server.ready) for server in status.servers}
    assert seen == {"p-0": ("a", (0,), 2, True), "p-1": ("a", (1,), 1, False)}
    assert status.remaining_servers == 0
    assert described(status, "Ready") == ("False", "ServersNotReady")
    assert described(status, "Reconciling")[0] == "True"
    assert (status.replicas, status.available_replicas) == (2, 1)


def test_an_empty_pool_is_ready() -> None:
    assert described(of_pool(statuses(decided_round([pool()]))), "Ready") == ("True", "NoModels")


def test_a_model_in_a_crash_loop_is_stalled_at_rest_and_restarted() -> None:
    for state in (READY, FAILED):
        crashing = LoadedModel("m", 1, state, "crash loop: it ended 3 times", FailureKind.CRASH)
        status = of_model(statuses(decided_round([pool(), model()], [report("p-0", crashing)])))
        assert described(status, "Loaded") == ("False", "CrashLoop")
        assert described(status, "Ready") == ("False", "CrashLoop")
        assert described(status, "Stalled") == ("True", "CrashLoop")
        assert "p-0: crash loop: it ended 3 times" in condition_of(status, "Ready").message
        assert status.available_replicas == 0


def test_what_no_request_reaches_is_not_ready() -> None:
    there = report("p-0", loaded("m"))
    cases = {
        "its Pod is not Ready": replace(there, takes_requests=False),
        "not labelled for it": replace(there, routes=frozenset()),
    }
    for why, unreached in cases.items():
        status = of_model(statuses(decided_round([pool(), model()], [unreached])))
        assert described(status, "Loaded") == ("True", "Loaded")
        assert described(status, "Available") == ("False", "NotReachable")
        assert described(status, "Ready") == ("False", "Progressing")
        assert why in condition_of(status, "Ready").message
        assert (status.available_replicas, status.versions[0].available_replicas) == (0, 0)


def test_what_an_old_report_says_is_unknown() -> None:
    silent = replace(report("p-0", loaded("m"), loaded("e")), expired=True)
    result = statuses(decided_round([pool(), model(), ensemble("e", {"model": "m"})], [silent]))
    for status in (of_model(result), of_ensemble(result)):
        assert described(status, "Available") == ("Unknown", "ReportExpired")
        assert described(status, "Ready") == ("Unknown", "ReportExpired")
        assert described(status, "Stalled")[0] == "False"
        assert "p-0" in condition_of(status, "Ready").message
    status = of_pool(result)
    assert described(status, "Ready") == ("Unknown", "ReportExpired")
    assert described(status, "Reconciling")[0] == described(status, "Stalled")[0] == "False"
    assert "p-0" in condition_of(status, "Ready").message
    assert (status.available_replicas, [server.ready for server in status.servers]) == (0, [False])
    gone = of_pool(statuses(decided_round([pool(), model()], [replace(silent, ready=False)])))
    assert described(gone, "Ready") == ("False", "ServersNotReady"), "that a server does not answer is known"
    moved = replace(silent, takes_requests=False)
    status = of_model(statuses(decided_round([pool(), model()], [moved])))
    assert described(status, "Ready")[0] == "False", "that a Pod is not Ready is known"


def test_what_a_full_report_has_no_space_for_is_unknown() -> None:
    full = replace(report("p-0", loaded("m"), loaded("e")), unsaid=frozenset({"m"}))
    result = statuses(decided_round([pool(), model(), ensemble("e", {"model": "m"})], [full]))
    assert described(of_model(result), "Available") == ("Unknown", "ReportIncomplete")
    assert described(of_model(result), "Ready") == ("Unknown", "ReportIncomplete")
    assert "p-0" in condition_of(of_model(result), "Ready").message
    assert described(of_ensemble(result), "Available") == ("True", "Available")
