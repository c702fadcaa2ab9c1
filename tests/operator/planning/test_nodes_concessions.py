"""GPUs that foreign Pods took from servers whose Pods find no node."""

from datetime import UTC, datetime, timedelta

from tests.operator.planning.declared import gpu_node

from argosy.planning.facts import CurrentServer, ServerReport
from argosy.planning.nodes.reservations import CONCESSION_DELAY, conceded, next_concession, reserved

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SERVERS = [CurrentServer("p-0", "a", (0,)), CurrentServer("p-1", "a", (1,))]


def reports(waited: timedelta) -> list[ServerReport]:
    return [ServerReport("p-0", ready=False, unscheduled_since=NOW - waited), ServerReport("p-1", ready=True)]


def test_a_server_whose_pod_finds_no_node_for_long_gives_up_its_gpu() -> None:
    assert conceded(SERVERS, reports(CONCESSION_DELAY), NOW) == {("a", 0)}


def test_it_keeps_it_for_a_while_and_is_looked_at_again_then() -> None:
    waiting = reports(CONCESSION_DELAY - timedelta(seconds=5))
    assert conceded(SERVERS, waiting, NOW) == set()
    assert next_concession(waiting, NOW) == NOW + timedelta(seconds=5)
    assert next_concession(reports(CONCESSION_DELAY), NOW) is None


def test_a_foreign_pod_has_a_conceded_gpu_only_if_no_other_is_free() -> None:
    spec = {"a": {"team/x": 1}}
    (roomy,) = reserved([gpu_node("a", 3)], SERVERS, {}, spec, {("a", 0)})
    (full,) = reserved([gpu_node("a", 2)], SERVERS, {}, spec, {("a", 0)})
    assert [gpu.withheld_by for gpu in roomy.gpus] == ["", "", "Pod team/x"]
    assert [gpu.withheld_by for gpu in full.gpus] == ["Pod team/x", ""]
