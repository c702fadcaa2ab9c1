"""A state that is cut for its size: what it leaves out is assumed to be as last reported, and is marked."""

from argosy.cluster.cache.indexer import Owned
from argosy.cluster.cache.pods.pod_cache import pod_view
from argosy.cluster.cache.pool_view import PoolView, pool_view
from argosy.cluster.cache.server_objects import Desired, State
from argosy_agent.contract import LoadedModel, LoadState, RenderedModel, RenderedRepository, VersionSource
from argosy_agent.contract.documents import AgentState, parse_state
from argosy_agent.contract.fitting import fitting_text
from argosy_agent.contract.sizes import text_bytes

POD = pod_view(
    {
        "metadata": {
            "name": "p",
            "uid": "u",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"argosy.dev/server": "pool-0"},
        },
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [{"name": "server", "ready": True}],
        },
    }
)
MODELS = tuple(RenderedModel(f"m{n}", "c" * 1000, {1: VersionSource("s3://b/m")}) for n in range(10))
STATE = AgentState(
    pod="u",
    live=True,
    settled=True,
    models=tuple(LoadedModel(model.name, 1, LoadState.READY) for model in MODELS),
    applied=RenderedRepository("pool-0", MODELS),
)


def view(message: AgentState, served: RenderedRepository | None) -> PoolView:
    details = (Desired("pool-0", None, served=served), State(message))
    return pool_view([Owned("1", 1, True, None, "pool", "pool-0", False, b"", detail) for detail in details], [POD])


def test_what_is_left_out_counts_as_it_was_last_recorded() -> None:
    cut = parse_state(fitting_text(STATE, 6000))
    assert 0 < cut.left_out < 10
    result = view(cut, RenderedRepository("pool-0", MODELS))
    (report,), (repository,) = result.reports, result.repositories
    assert {model.model: model.state for model in report.models} == {model.name: LoadState.READY for model in MODELS}
    assert {model.name for model in repository.models} == {model.name for model in MODELS}
    assert report.unsaid == {model.name for model in MODELS[10 - cut.left_out :]}
    assert f"says nothing of {cut.left_out} more models" in report.error
    assert text_bytes(report.error) < 200


def test_of_what_was_never_noted_nothing_is_recorded() -> None:
    cut = parse_state(fitting_text(STATE, 6000))
    (report,) = view(cut, None).reports
    assert (len(report.models), report.unsaid) == (10 - cut.left_out, frozenset())
    assert "says nothing of" in report.error


def test_a_full_state_is_taken_at_its_word() -> None:
    (report,) = view(
        parse_state(fitting_text(STATE)), RenderedRepository("pool-0", (*MODELS, RenderedModel("x", "", {})))
    ).reports
    assert ({model.model for model in report.models}, report.unsaid) == ({model.name for model in MODELS}, frozenset())
    assert report.error == ""
