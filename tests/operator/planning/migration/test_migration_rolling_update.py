"""A changed Pod template reaches one server of a pool after the other."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy.planning.migration.rolling_update import ServerUpgrade, may_upgrade

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
    lambda found: [ServerUpgrade(f"p-{number}", *flags) for number, flags in enumerate(found)]
)


@given(states)
def test_at_most_one_server_at_a_time_and_none_while_one_is_not_settled(servers: list[ServerUpgrade]) -> None:
    allowed = may_upgrade(servers)
    begun = [each for each in servers if not each.outdated and not (each.ready and each.settled)]
    outdated = [each for each in servers if each.outdated]
    assert len(allowed) == (0 if begun or not outdated else 1)
    assert allowed <= {each.name for each in outdated}
    assert all(not each.ready for each in outdated if each.name in allowed) or all(each.ready for each in outdated)


@given(states)
def test_every_server_gets_the_template_in_the_end(servers: list[ServerUpgrade]) -> None:
    found = {each.name: each for each in servers}
    for _ in range(2 * len(servers)):
        found = {
            name: each if each.outdated else replace(each, ready=True, settled=True) for name, each in found.items()
        }
        for name in may_upgrade(list(found.values())):
            found[name] = ServerUpgrade(name, outdated=False, ready=False, settled=False)
            assert may_upgrade(list(found.values())) == frozenset()
    assert not any(each.outdated for each in found.values())
