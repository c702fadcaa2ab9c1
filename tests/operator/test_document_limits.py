"""A server whose models have long configurations, in virtual time: each step keeps its documents within their limit."""

from collections.abc import Sequence
from datetime import timedelta

from hypothesis import given
from hypothesis import strategies as st
from tests.operator.planning.declared import model, pool
from tests.operator.planning.simulated_cluster import POOL, Cluster
from tests.properties import examples

from argosy.api import Resource
from argosy.planning.facts import Gpu, Node
from argosy_agent.contract import LoadedModel, LoadState, RenderedRepository, in_load_order
from argosy_agent.contract.documents import AgentState, repository_text, state_text
from argosy_agent.contract.sizes import DOCUMENT_BYTES

NODE = Node("c", (Gpu(0, 64 << 30, is_cpu=True),))


def wordy(name: str, kilobytes: int, **spec: object) -> Resource:
    """Return a model on the CPU with a configuration of so many thousand bytes."""
    config = {"parameters": {"text": {"string_value": "x" * 1000 * kilobytes}}}
    return model(name, memory=0, config=config, **spec)


def documents(cluster: Cluster) -> list[int]:
    """Return the size in bytes of each document that is written now."""
    result = []
    for name, server in cluster.servers.items():
        repository = RenderedRepository(name, in_load_order(tuple(server.loaded.values())))
        reported = tuple(LoadedModel(m.name, v, LoadState.READY) for m in repository.models for v in m.versions)
        result += [state_text(AgentState(models=reported, applied=repository)), repository_text(server.step.repository)]
    return [len(text.encode()) for text in result]


def settled(cluster: Cluster, resources: Sequence[Resource], names: set[str], rounds: int = 200) -> set[str]:
    """Run rounds until just these are reached and nothing else is loaded; return what waited meanwhile, in words."""
    waited: set[str] = set()
    for _ in range(rounds):
        outcome = cluster.tick(resources)
        assert all(size <= DOCUMENT_BYTES for size in documents(cluster))
        for status in outcome.statuses.values():
            waited |= {condition.message for condition in status.conditions if "it waits until" in condition.message}
        if set(cluster.routed()) == names == set(cluster.serving()):
            return waited
    raise AssertionError(f"{sorted(cluster.routed())} are reached, {sorted(cluster.serving())} are loaded")


def test_a_model_waits_until_another_leaves_the_documents() -> None:
    cluster, one = Cluster((NODE,), slow=timedelta(seconds=2)), pool(maxServers=1)
    before, after = [[wordy(name, 250) for name in names] for names in ("abc", "def")]
    settled(cluster, [one, *before], set("abc"))
    waited = settled(cluster, [one, *after], set("def"))
    assert any("left this server" in item for item in waited)


def test_what_grows_keeps_its_revision_until_what_goes_has_left() -> None:
    cluster, one = Cluster((NODE,), slow=timedelta(seconds=2)), pool(maxServers=1)
    settled(cluster, [one, wordy("a", 250), wordy("b", 600)], {"a", "b"})
    grown = [one, wordy("a", 700)]
    settled(cluster, grown, {"a"})
    cluster.settle(grown)
    (server,) = cluster.servers.values()
    assert len(server.loaded["a"].config_text) > 700_000


def test_what_grows_beyond_its_server_moves_and_serves_on() -> None:
    cluster = Cluster((NODE,), slow=timedelta(seconds=2))
    settled(cluster, [pool(), wordy("a", 400), wordy("b", 400)], {"a", "b"})
    assert len(cluster.servers) == 1
    grown = [pool(), wordy("a", 400), wordy("b", 700)]
    for _ in range(60):
        cluster.tick(grown)
        assert all(size <= DOCUMENT_BYTES for size in documents(cluster))
        assert set(cluster.routed()) == {"a", "b"}
    assert len(cluster.servers) == 2


@given(
    st.lists(
        st.dictionaries(st.sampled_from("abcdef"), st.integers(1, 5).map(lambda n: n * 150)), min_size=2, max_size=4
    )
)
@examples(5)
def test_documents_are_never_too_large_whatever_is_declared(steps: list[dict[str, int]]) -> None:
    cluster = Cluster((NODE,), slow=timedelta(seconds=2))
    for step in steps:
        resources = [pool(), *(wordy(name, size) for name, size in sorted(step.items()))]
        for _ in range(25):
            cluster.tick(resources)
            assert all(size <= DOCUMENT_BYTES for size in documents(cluster))
    for _ in range(60):
        cluster.tick(resources)
    assert set(cluster.routed()) == set(steps[-1]) == set(cluster.serving())
    assert {placed.reason for placed in cluster.outcome.plan.pools[0].unplaced} == set()  # type: ignore[union-attr]
    assert cluster.outcome.plan.pools[0].pool == POOL  # type: ignore[union-attr]
