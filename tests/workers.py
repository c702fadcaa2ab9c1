"""`pytest --numprocesses=N`: which tests one worker runs, one after the other, and which begin first.

Tests that share something that is brought for them (a cluster, a server, a fixed port) stay together; other files of
tests are dealt out as workers become free. What takes longest begins first, so that no worker waits long at the end.
"""

from typing import Any

from xdist.scheduler import LoadScopeScheduling

TOGETHER = (
    ("tests/cluster_tools/test_node.py", "node"),  # a machine has one: its own cluster first, then that of e2e/
    ("e2e/test_fleet.py", "fleet"),  # its nodes are hollow
    ("e2e/test_admission.py", "fleet"),  # it has no nodes
    ("e2e/test_packing.py", "fleet"),  # its nodes are played
    ("e2e/test_placeholders.py", "fleet"),  # its nodes are played
    ("e2e/", "node"),
    ("tests/operator/api/on_server/", "api server of custom resources"),
    ("tests/operator/cluster/", "api server"),
    ("tests/operator/render/workloads/", "api server"),
    ("tests/agent/sources/test_configmaps.py", "api server"),
    ("tests/chart/", "chart"),
    ("tests/docs/test_documents.py", "ports"),  # fixed ones, which the documents name
    ("tests/examples/test_make_run.py", "make run"),
    ("tests/examples/", "examples"),
    ("tests/clients/", "clients"),
    ("tests/engines/", "engines"),
    ("tests/differential/", "differential"),
    ("tests/rendered/", "rendered"),
    ("tests/runtime/frontends/", "frontends"),
    ("tests/builder/aotinductor/", "aotinductor"),  # shares nothing: its compilers take minutes
)
"""The beginning of a test's id, and what it shares; the first that fits counts."""
FIRST = ("node", "api server", "ports", "fleet", "chart", "engines", "aotinductor")
"""What takes longest, or waits most, in the order in which it begins. `chart` builds images, as `node` does at its
beginning, which would wait for it.
"""


EARLY = ("tests/differential/", "tests/runtime/frontends/", "tests/examples/", "tests/clients/", "tests/serve/")
"""What begins after FIRST: one of these files or groups takes minutes. What computes and ends soon comes last."""


def share(nodeid: str) -> str:
    """Return the group in which a test runs on one worker: a name from TOGETHER, or else its file."""
    return next((name for start, name in TOGETHER if nodeid.startswith(start)), nodeid.partition("::")[0])


def rank(nodeid: str) -> int:
    """Return which tests come first: the lower, the earlier. Those of one rank keep their order."""
    name = share(nodeid)
    if name in FIRST:
        return FIRST.index(name)
    return len(FIRST) if nodeid.startswith(EARLY) else len(FIRST) + 1


class Scheduling(LoadScopeScheduling):  # type: ignore[misc]
    """pytest-xdist's, with `share` in place of modules and classes."""

    def __init__(self, config: Any, log: Any = None) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False  # it would begin with what has the most tests

    def _split_scope(self, nodeid: str) -> str:
        return share(nodeid)
