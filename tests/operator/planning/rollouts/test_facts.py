"""What servers report of a rollout's revisions."""

import pytest

from argosy.planning.facts import ServerReport
from argosy.planning.rollouts.facts import LoadedRevisions
from argosy_agent.contract import WAY_OUT, FailureKind, LoadedModel, LoadState, RenderedModel, RenderedRepository


def loaded(*models: LoadedModel) -> LoadedRevisions:
    return LoadedRevisions.of([ServerReport("s", ready=True, models=models)], ())


def failed(kind: FailureKind, reason: str = "no such file") -> LoadedModel:
    return LoadedModel("m", 2, LoadState.UNAVAILABLE, reason, kind)


def test_a_stable_version_answers_though_the_candidate_cannot_be_fetched() -> None:
    unfetched = LoadState.UNAVAILABLE, "no such file", FailureKind.DOWNLOAD
    stable = LoadedModel("m", 1, *unfetched, former=True)
    server = loaded(stable, LoadedModel("m", 2, *unfetched))
    assert server.is_ready("m", 1)
    assert not server.is_ready("m", 2)
    assert not server.candidate("m", 2).loaded


@pytest.mark.parametrize("kind", [FailureKind.DOWNLOAD, FailureKind.DEVICE, FailureKind.SERVER])
def test_what_a_revision_did_not_cause_is_no_failure_of_its_own(kind: FailureKind) -> None:
    facts = loaded(failed(kind)).candidate("m", 2)
    assert facts.failure is None
    assert facts.unrelated is not None
    assert facts.unrelated.message == "s: no such file"


@pytest.mark.parametrize(("kind", "reason"), [(FailureKind.DIGEST, "Digest"), (FailureKind.FILES, "NoFiles")])
def test_files_that_are_missing_or_others_than_declared_are_a_failure_of_its_own(
    kind: FailureKind, reason: str
) -> None:
    facts = loaded(LoadedModel("m", 1, LoadState.READY), failed(kind)).candidate("m", 2)
    assert facts.failure is not None
    assert (facts.failure.reason, facts.failure.message) == (reason, "s: no such file")
    assert facts.unrelated is None


def test_files_that_one_node_lacks_are_no_failure_of_a_revision_that_is_ready_on_other_nodes() -> None:
    without = ServerReport("s", ready=True, models=(failed(FailureKind.FILES),))
    other = ServerReport("t", ready=True, models=(LoadedModel("m", 2, LoadState.READY),))
    facts = LoadedRevisions.of([without, other], ()).candidate("m", 2)
    assert facts.failure is None
    assert facts.unrelated is not None
    assert (facts.unrelated.reason, facts.unrelated.message) == ("NotLoaded", "s: no such file")


def test_where_no_server_is_ready_the_first_error_says_why() -> None:
    silent = ServerReport("s", ready=False, error="server s has not answered for 30 s")
    facts = LoadedRevisions.of([silent, ServerReport("t", ready=False)], ()).candidate("m", 2)
    assert facts.unrelated is not None
    assert facts.unrelated.reason == "ServersNotReady"
    assert facts.unrelated.message == "s: server s has not answered for 30 s"
    assert LoadedRevisions.of([silent, ServerReport("t", ready=True)], ()).candidate("m", 2).unrelated is None
    own = RenderedRepository("s", (RenderedModel("m", "", {}),))
    there = LoadedRevisions.of([silent, ServerReport("t", ready=True)], [own]).candidate("m", 2)
    assert there.unrelated == facts.unrelated


def test_a_failure_does_not_promise_that_a_held_revision_is_loaded_again() -> None:
    reason = f"model.onnx holds no graph; {WAY_OUT} (the server's log may say more)"
    facts = loaded(failed(FailureKind.LOAD, reason)).candidate("m", 2)
    assert facts.failure is not None
    assert facts.failure.message == "s: model.onnx holds no graph (the server's log may say more)"


def test_what_no_server_can_load_says_why() -> None:
    missing = LoadedModel("m", 1, LoadState.UNAVAILABLE, "no such file", FailureKind.FILES)
    failure = loaded(missing).failure("m", 1)
    assert failure is not None
    assert (failure.reason, failure.message) == ("NoFiles", "s: no such file")
    assert loaded(LoadedModel("m", 1, LoadState.LOADING)).failure("m", 1) is None
    one = ServerReport("s", ready=True, models=(missing,))
    other = ServerReport("t", ready=True, models=(LoadedModel("m", 1, LoadState.READY),))
    assert LoadedRevisions.of([one, other], ()).failure("m", 1) is None
