"""The ports of a profile's server: two that begin at the same time do not search the same ones."""

from argosy.local.profiling.serving import first_ports


def test_processes_that_begin_at_the_same_time_search_other_ports() -> None:
    processes = range(40_000, 42_000)
    ports = [port for process in processes for port in first_ports(process).flags().values()]
    assert len(set(ports)) == len(ports)
    assert (min(ports), max(ports)) == (18_000, 23_999)  # the first of outgoing connections is 32768
