"""What Pods may be asked for, and to which of that no Service leads."""

from datetime import UTC, datetime
from typing import Any

import pytest

from argosy.autoscaling.decision import Ejection
from argosy.cluster.cache.pods.pod_cache import PodView
from argosy.cluster.cache.pods.routing import Routes
from argosy.controller.rendering.routing import routed
from argosy.planning.migration.choices import VariantChoice
from argosy.planning.plan import ServerPlan
from argosy.render.repositories import RenderedServer
from argosy_agent.contract import RenderedRepository

NOW = datetime(2026, 1, 1, tzinfo=UTC)
M = frozenset({"m"})
NOTHING: frozenset[str] = frozenset()


def pod(server: str, **message: Any) -> PodView:
    """Return a Pod that may be asked about the model `m`."""
    fields = {"name": server, "ready": True, "server_ready": True, "terminating": False, "routes": M, "settled": True}
    return PodView(uid="u", server=server, error="", created=NOW, **fields | message)


def step(server: str, routes: frozenset[str] = M) -> RenderedServer:
    return RenderedServer(ServerPlan(server, "a", (), ()), RenderedRepository(server), routes)


def away(*pods: PodView, keep: int = 1, gone: str = "") -> set[str]:
    """Return the Pods to which no Service is to lead, where the queues of `a` and `b` are too long and that of `a`
    longer.
    """
    steps = [step(pod.server, NOTHING if pod.server == gone else M) for pod in pods]
    result = routed(steps, pods, (), {"m": Ejection(("a", "b"), keep)})
    assert all(item.names == (NOTHING if name == gone else M) for name, item in result.items())
    return {name for name, item in result.items() if item.ejected}


def test_no_service_leads_to_an_ejected_server_which_stays_ready() -> None:
    result = routed([step("a"), step("c")], [pod("a"), pod("c")], (), {"m": Ejection(("a",))})
    assert result == {"a": Routes(M, M), "c": Routes(M)}


def test_what_no_one_ejects_any_more_is_led_to() -> None:
    assert routed([step("a")], [pod("a", ejected=M)], (), {}) == {"a": Routes(M)}


def test_as_many_as_are_to_be_retained_are() -> None:
    assert away(pod("a"), pod("b"), pod("c")) == {"a", "b"}
    assert away(pod("a"), pod("b"), pod("c"), keep=2) == {"a"}
    assert away(pod("a"), pod("b")) == {"a"}


@pytest.mark.parametrize("lacks", [{"ready": False}, {"server_ready": False}, {"terminating": True}], ids=str)
def test_a_pod_that_takes_no_requests_has_no_capacity(lacks: dict[str, Any]) -> None:
    result = routed([step("a"), step("c")], [pod("a"), pod("c", **lacks)], (), {"m": Ejection(("a",))})
    assert result["a"] == Routes(M)


def test_what_drains_has_no_capacity() -> None:
    assert away(pod("a"), pod("c"), gone="c") == set()


def test_until_services_lead_to_a_new_pod_one_of_those_before_is_left() -> None:
    assert away(pod("a"), pod("b"), pod("c", routes=NOTHING)) == {"a"}
    assert away(pod("a"), pod("b", ejected=M), pod("c", routes=NOTHING)) == {"b"}, "a alone is led to"
    assert away(pod("a", ejected=M), pod("b", ejected=M), pod("c")) == {"a", "b"}
    assert away(pod("a", ejected=M), pod("b", ejected=M), pod("c", routes=NOTHING)) == {"a"}, "nobody is led to"


def test_two_pods_of_one_server_are_one() -> None:
    old, new = pod("a"), pod("a", name="again")
    assert routed([step("a")], [old, new], (), {"m": Ejection(("a",))}) == {"a": Routes(M), "again": Routes(M)}


def test_a_server_that_waits_for_its_restart_goes_on_with_what_it_has() -> None:
    assert routed([step("a", NOTHING)], [pod("a")], {"a"}, {}) == {"a": Routes(M)}


def chosen(*pods: PodView, servers: str = "c", others: str = "ab", **ejections: Ejection) -> set[str]:
    """Return the Pods to which no Service is to lead, where `servers` have the chosen variant and `others` have not."""
    choice = VariantChoice("m--high", "m--high", frozenset(servers), frozenset(others))
    result = routed([step(pod.server) for pod in pods], pods, (), ejections, {"m": choice})
    assert all(item.names == M for item in result.values())
    return {name for name, item in result.items() if item.ejected}


def test_no_service_leads_to_servers_of_other_variants() -> None:
    assert chosen(pod("a"), pod("b"), pod("c")) == {"a", "b"}
    assert chosen(pod("a"), pod("b", ready=False), pod("c", ejected=M)) == {"a", "b"}


@pytest.mark.parametrize("lacks", [{"ready": False}, {"server_ready": False, "ready": False}], ids=str)
def test_all_are_led_to_while_no_server_of_the_chosen_variant_is_ready(lacks: dict[str, Any]) -> None:
    pods = [pod("a"), pod("b"), pod("c", **lacks)]
    choice = VariantChoice("m--high", "m--high", frozenset("c"), frozenset("ab"))
    result = routed([step(one.server) for one in pods], pods, (), {}, {"m": choice})
    assert not any(item.ejected for item in result.values())


def test_of_the_chosen_variants_servers_one_stays_however_long_its_queue_is() -> None:
    assert chosen(pod("a"), pod("c"), m=Ejection(("c",))) == {"a"}
    assert chosen(pod("a"), pod("c"), pod("d"), servers="cd", others="a", m=Ejection(("c", "a"))) == {"a", "c"}
