"""What a status says of a stable version while servers load a candidate next to it."""

from argosy.api.status import VersionState
from argosy.planning.facts import ServerReport
from argosy.planning.migration.observed import Observed
from argosy.status.findings.loading import Loading
from argosy_agent.contract import FailureKind, LoadedModel, LoadState

UNFETCHED = LoadState.UNAVAILABLE, "no such file", FailureKind.DOWNLOAD
STABLE, CANDIDATE = LoadedModel("m", 1, *UNFETCHED, former=True), LoadedModel("m", 2, *UNFETCHED)


def loading(*models: LoadedModel) -> Loading:
    report = ServerReport("s", ready=True, takes_requests=True, models=models, routes=frozenset({"m"}))
    return Loading.of("m", {1}, ["s"], Observed.of([report]))


def test_a_candidate_that_cannot_be_fetched_is_no_failure_of_the_stable_version() -> None:
    state = loading(STABLE, CANDIDATE).proving(1, frozenset({2}), {1: 100, 2: 0})
    assert (state.available, state.failures) == (("s",), {})
    assert state.finding().so
    states = {entry.version: (entry.state, entry.reason) for entry in state.versions()}
    assert states[1] == (VersionState.SERVING, "")


def test_a_stable_version_has_its_own_failures() -> None:
    other = LoadedModel("m", 1, LoadState.UNAVAILABLE, "the config is refused", FailureKind.LOAD, former=True)
    state = loading(other, CANDIDATE).proving(1, frozenset({2}), {1: 100, 2: 0})
    assert state.failures == {"s": "the config is refused (its former files and config go on serving)"}
    alone = loading(STABLE).proving(1, frozenset(), {1: 100})
    assert alone.failures == {"s": "no such file (its former files and config go on serving)"}
