"""What servers say and hold: what is ready, what answers, and what requests reach."""

from dataclasses import replace

import pytest

from argosy.planning.facts import ServerReport
from argosy.planning.migration.observed import Observed
from argosy.planning.migration.revisions import ModelRevision
from argosy_agent.contract import LoadedModel, LoadState, VersionSource

M = LoadedModel("m", 1, LoadState.READY)
REPORT = ServerReport("p-0", True, (M,), takes_requests=True, routes=frozenset({"m"}))


def test_what_is_ready_routed_and_takes_requests_is_reachable() -> None:
    result = Observed.of([REPORT])
    assert result.reachable("p-0", "m")
    assert result.is_ready("p-0", "m", 1)
    assert not result.is_ready("p-0", "m", 2)
    assert not result.unserved("m")


@pytest.mark.parametrize(
    "lacks",
    [
        {"routes": frozenset()},
        {"takes_requests": False},
        {"ready": False},
        {"models": (replace(M, state=LoadState.LOADING),)},
    ],
)
def test_what_lacks_one_of_these_is_not(lacks: dict[str, object]) -> None:
    assert not Observed.of([replace(REPORT, **lacks)]).reachable("p-0", "m")  # type: ignore[arg-type]


def test_a_server_that_is_not_ready_says_nothing_and_may_still_be_routed() -> None:
    result = Observed.of([replace(REPORT, ready=False)])
    assert (result.serves("p-0", "m"), result.has_ready("p-0", "m", 1), result.routed("p-0", "m")) == (
        False,
        False,
        True,
    )
    assert result.unserved("m")


def test_a_former_revision_answers_though_the_new_one_loads() -> None:
    result = Observed.of([replace(REPORT, models=(replace(M, state=LoadState.LOADING, former=True),))])
    assert result.serves("p-0", "m")
    assert not result.has_ready("p-0", "m", 1)


def test_a_revision_that_is_outdated_is_ready_and_not_as_it_should_be() -> None:
    result = replace(Observed.of([REPORT]), outdated=frozenset({("p-0", "m")}))
    assert result.has_ready("p-0", "m", 1)
    assert not result.is_ready("p-0", "m", 1)


def test_a_server_that_no_one_knows_has_nothing() -> None:
    result = Observed.of([REPORT])
    assert (result.routed("p-1", "m"), result.reachable("p-1", "m"), result.loaded_on("p-1")) == (False, False, {})


def test_every_version_of_a_server_is_observed_and_loaded_ones_count() -> None:
    old, new = VersionSource("s3://b/old"), VersionSource("s3://b/new")
    loaded = {"p-0": {"m": ModelRevision("m", {1: new})}}
    served = {"p-0": {"m": ModelRevision("m", {1: old})}, "p-1": {"m": ModelRevision("m", {2: old})}}
    assert Observed.of([], loaded, served).sources == {"m": {1: new, 2: old}}
