"""A model short of memory, for real: its own MemoryError, and the kernel that ends its process."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.serve.process import Serving, wait_until

LIMIT = 700 << 20
V1, V2 = Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")
# It touches what it takes, and gives up where nothing ends it, so that a machine without the limit survives.
HOARD = "y = len([b'x' * (1 << 24) for _ in range(128)])"


def failures(server: Serving) -> dict[str, int]:
    """Return the counts of failed requests by their reasons, without zeros."""
    samples = re.findall(r'^argosy_request_failures_total\{.*reason="(\w+)"\} (\d+)$', server.metrics(), re.MULTILINE)
    return {reason: int(count) for reason, count in samples if count != "0"}


def test_a_models_own_memory_error_is_a_reason_of_its_own(add_model, serve):
    add_model("greedy", execute="y = len(bytearray(1 << 50)) if x else x")
    server = serve().wait_until_ready()
    assert server.infer("greedy", 0)[0] == 200
    status, error = server.infer("greedy", 1)
    assert (status, "MemoryError" in error) == (500, True)
    assert failures(server) == {"OUT_OF_MEMORY": 1}
    assert 'nv_inference_request_failure{model="greedy",version="1",reason="BACKEND"} 1' in server.metrics()


@pytest.fixture
def confined() -> Iterator[Path]:
    """Yield a cgroup with a memory limit, of either version."""
    root, limit = (V2, "memory.max") if (V2 / "cgroup.subtree_control").exists() else (V1, "memory.limit_in_bytes")
    group = root / f"argosy-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / limit).write_text(str(LIMIT))
    except OSError as error:
        if group.is_dir():
            group.rmdir()
        pytest.skip(f"a cgroup with a memory limit cannot be made here ({error}): run as root, with cgroups writable")
    yield group
    wait_until(lambda: not (group / "cgroup.procs").read_text().strip(), group / "cgroup.procs")
    group.rmdir()


def test_a_process_killed_for_memory_is_distinguished_from_other_deaths(confined, add_model, serve):
    add_model("hoards", execute=HOARD)
    add_model("crashes", execute="os.kill(os.getpid(), 9)")
    server = serve("--model-control-mode=explicit")
    (confined / "cgroup.procs").write_text(str(server.process.pid))
    server.wait_until_ready()
    for model in ("crashes", "hoards"):
        assert server.ask(f"/v2/repository/models/{model}/load", b"{}")[0] == 200
    assert "was killed by signal 9 (SIGKILL);" in server.infer("crashes", 1)[1]
    assert failures(server) == {"BACKEND": 1}
    assert "(SIGKILL) for want of memory" in server.infer("hoards", 1)[1]
    assert failures(server) == {"BACKEND": 1, "OUT_OF_MEMORY": 1}
    server.end()
