"""A changed Pod template reaches one server of a pool after the other."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.planning.migration.disruption import ServerUpgrade, may_upgrade

OLD = ServerUpgrade("p-0", outdated=True, ready=True, settled=True)
NEW = ServerUpgrade("p-1", outdated=False, ready=True, settled=True)


@pytest.mark.parametrize(
    ("servers", "allowed"),
    [
        ([], set()),
        ([NEW], set()),
        ([OLD, NEW], {"p-0"}),
        ([ServerUpgrade("p-10", True, True, True), ServerUpgrade("p-9", True, True, True)], {"p-9"}),
        ([OLD, ServerUpgrade("p-1", outdated=False, ready=False, settled=True)], set()),
        ([OLD, ServerUpgrade("p-1", outdated=False, ready=True, settled=False)], set()),
        ([OLD, ServerUpgrade("p-1", outdated=True, ready=False, settled=False)], {"p-1"}),
        ([OLD, ServerUpgrade("p-1", outdated=True, ready=True, settled=False)], {"p-1"}),
        ([replace(OLD, relied_on=True), NEW], set()),
        ([replace(OLD, relied_on=True), ServerUpgrade("p-2", True, True, True), NEW], {"p-2"}),
    ],
)
def test_the_next_server_waits_for_the_last_one(servers: list[ServerUpgrade], allowed: set[str]) -> None:
    assert may_upgrade(servers) == allowed


states = st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), max_size=6).map(
    lambda result: [ServerUpgrade(f"p-{number}", *flags) for number, flags in enumerate(result)]
)


@given(states)
def test_at_most_one_server_at_a_time_and_none_while_one_is_not_settled(servers: list[ServerUpgrade]) -> None:
    allowed = may_upgrade(servers)
    begun = [server for server in servers if not server.outdated and not (server.ready and server.settled)]
    outdated = [server for server in servers if server.outdated]
    assert len(allowed) == (0 if begun or not outdated else 1)
    assert allowed <= {item.name for item in outdated}
    assert all(not item.ready for item in outdated if item.name in allowed) or all(item.ready for item in outdated)


@given(states)
def test_every_server_gets_the_template_in_the_end(servers: list[ServerUpgrade]) -> None:
    result = {server.name: server for server in servers}
    for _ in range(2 * len(servers)):
        result = {
            name: item if item.outdated else replace(item, ready=True, settled=True) for name, item in result.items()
        }
        for name in may_upgrade(list(result.values())):
            result[name] = ServerUpgrade(name, outdated=False, ready=False, settled=False)
            assert may_upgrade(list(result.values())) == frozenset()
    assert not any(item.outdated for item in result.values())
