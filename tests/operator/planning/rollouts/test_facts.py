"""What servers report of a rollout's revisions."""

from argosy.planning.facts import ServerReport
from argosy.planning.rollouts.facts import LoadedRevisions
from argosy_agent.contract import FailureKind, LoadedModel, LoadState


def test_a_stable_version_answers_though_the_candidate_cannot_be_fetched() -> None:
    failed = LoadState.UNAVAILABLE, "no such file", FailureKind.DOWNLOAD
    stable = LoadedModel("m", 1, *failed, former=True)
    report = ServerReport("s", ready=True, models=(stable, LoadedModel("m", 2, *failed)))
    loaded = LoadedRevisions.of([report], ())
    assert loaded.is_ready("m", 1)
    assert not loaded.is_ready("m", 2)
    assert not loaded.candidate("m", 2).loaded
