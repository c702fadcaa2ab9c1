"""Host policies: where the processes and threads of instances run."""

import os

import pytest
from tests.runtime.service.conftest import CONFIG, ask, infer

from argosy_runtime.backends.contract import HostPolicy
from argosy_runtime.errors import ServingError

CORES = "y = np.array([sorted(os.sched_getaffinity(0))[:1]], np.float32)"
IMPORTS = "global np; import numpy as np"


async def first_core(plane, name: str) -> float:
    """Return the first processor that a model may use."""
    return float((await infer(plane, ask(name, 1))).outputs[0].array[0, 0])


async def test_instances_run_on_the_cores_of_their_policy(repository, serve):
    cores = sorted(os.sched_getaffinity(0))
    repository.add("m", IMPORTS, CORES)
    repository.add("n", IMPORTS, CORES, CONFIG + 'instance_group [ { host_policy: "mine" } ]')
    policies = {"cpu": HostPolicy(cpu_cores=(cores[-1],)), "mine": HostPolicy(cpu_cores=(cores[0],))}
    plane = await serve(host_policies=policies)
    await plane.load("m", None, {})
    await plane.load("n", None, {})
    assert (await first_core(plane, "m"), await first_core(plane, "n")) == (cores[-1], cores[0])
    assert sorted(os.sched_getaffinity(0)) == cores


MODE = """
import ctypes
mode = ctypes.c_int()
ctypes.CDLL(None).syscall({"x86_64": 239, "aarch64": 236}[os.uname().machine], ctypes.byref(mode), None, 0, None, 0)
y = np.array([[mode.value]], np.float32)
"""


async def test_memory_is_bound_to_the_node_of_the_policy(repository, serve):
    repository.add("m", IMPORTS, MODE)
    plane = await serve(host_policies={"cpu": HostPolicy(numa_node=0)})
    await plane.load("m", None, {})
    assert await first_core(plane, "m") == 2, "MPOL_BIND"


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (HostPolicy(cpu_cores=(8000,)), "Unable to set NUMA thread affinity: Invalid argument"),
        (HostPolicy(numa_node=1000), "Unable to set NUMA memory policy: "),
    ],
)
async def test_a_policy_that_the_machine_does_not_have_fails_the_load(repository, serve, policy, message):
    repository.add("m")
    plane = await serve(host_policies={"cpu": policy})
    with pytest.raises(ServingError, match=message):
        await plane.load("m", None, {})


def test_settings_of_one_policy_add_up():
    policy = HostPolicy(cpu_cores=(1,)).with_settings(HostPolicy(numa_node=0))
    assert policy == HostPolicy(cpu_cores=(1,), numa_node=0)
    assert policy.with_settings(HostPolicy(cpu_cores=(2, 3))) == HostPolicy(cpu_cores=(2, 3), numa_node=0)
