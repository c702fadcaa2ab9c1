"""One server of a pool after the other."""

import pytest

from argosy.fleet.migration.rolling_update import ServerUpgrade, may_upgrade

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
    ],
)
def test_the_next_server_waits_for_the_last_one(servers: list[ServerUpgrade], allowed: set[str]) -> None:
    assert may_upgrade(servers) == allowed


def test_a_pool_is_upgraded_one_server_at_a_time() -> None:
    servers = {f"p-{n}": ServerUpgrade(f"p-{n}", outdated=True, ready=True, settled=True) for n in range(12)}
    order = []
    while chosen := may_upgrade(list(servers.values())):
        (name,) = chosen
        servers[name] = ServerUpgrade(name, outdated=False, ready=False, settled=False)
        assert may_upgrade(list(servers.values())) == set()
        servers[name] = ServerUpgrade(name, outdated=False, ready=True, settled=True)
        order.append(name)
    assert order == [f"p-{n}" for n in range(12)]
