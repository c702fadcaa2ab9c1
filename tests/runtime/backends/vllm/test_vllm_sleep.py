"""Sleeping engines: their adapters, and the host's memory for their weights."""

import json
from pathlib import Path

import pytest
from tests import lora_files
from tests.runtime.language.language_requests import generation
from tests.runtime.test_cpus import machine

from argosy_runtime.backends.engines.commands import AddAdapter, RemoveAdapter, Sleep, Wake
from argosy_runtime.backends.vllm.sleep import available_bytes, check_host_memory, weight_bytes
from argosy_runtime.errors import ErrorKind, ServingError

GIB = 1 << 30


@pytest.fixture
def adapters(tmp_path: Path) -> dict[str, str]:
    """Return the folders of two adapters."""
    return {name: str(lora_files.write(tmp_path / name)) for name in ("one", "two")}


def test_adapters_stay_while_an_engine_sleeps(open_instance, responder, adapters):
    instance = open_instance(enable_sleep_mode=True, enable_lora=True)
    instance.manage(AddAdapter("one", adapters["one"]))
    instance.manage(Sleep())
    instance.manage(Wake())
    instance.manage(AddAdapter("two", adapters["two"]))
    samplings = [json.dumps({"max_tokens": 3, "lora_name": name}) for name in adapters]
    requests = [generation(text_input="abc", sampling_parameters=sampling) for sampling in samplings]
    instance.execute(requests, responder)
    responder.wait_for_final(0, 1)
    assert [response.error for _, response in responder.sent] == [None, None]


def test_a_sleeping_engine_takes_no_adapters(open_instance, llm, adapters):
    instance = open_instance(enable_sleep_mode=True, enable_lora=True)
    instance.manage(AddAdapter("one", adapters["one"]))
    instance.manage(Sleep())
    for command in (AddAdapter("two", adapters["two"]), RemoveAdapter("one")):
        with pytest.raises(ServingError, match="is asleep") as refused:
            instance.manage(command)
        assert refused.value.kind is ErrorKind.UNAVAILABLE
    assert (llm().loras, llm().errored) == ({1}, False)


def test_an_engine_without_memory_of_the_host_for_its_weights_does_not_sleep(open_instance, llm, tmp_path):
    version = tmp_path / "llm/1"
    version.mkdir(parents=True)
    with (version / "pytorch_model.bin").open("wb") as weights:
        weights.truncate(1 << 43)
    instance = open_instance(enable_sleep_mode=True, model=str(version))
    with pytest.raises(ServingError, match=r"need up to 16384\.0 GiB of the host's memory") as refused:
        instance.manage(Sleep())
    assert refused.value.kind is ErrorKind.UNAVAILABLE
    assert not llm().level


@pytest.mark.parametrize(
    ("groups", "files", "gib"),
    [
        ("0::/\n", {}, 64),
        ("0::/\n", {"memory.max": "max\n", "memory.current": f"{GIB}\n"}, 64),
        ("0::/\n", {"memory.max": f"{32 * GIB}\n", "memory.current": f"{12 * GIB}\n"}, 20),
        (
            "0::/pod/server\n",
            {
                "pod/memory.max": f"{32 * GIB}\n",
                "pod/memory.current": f"{30 * GIB}\n",
                "pod/memory.stat": f"anon {12 * GIB}\ninactive_file {18 * GIB}\n",
            },
            20,
        ),
        (
            "4:memory:/x\n2:cpu,cpuacct:/x\n",
            {
                "memory/x/memory.limit_in_bytes": f"{16 * GIB}\n",
                "memory/x/memory.usage_in_bytes": f"{10 * GIB}\n",
                "memory/x/memory.stat": f"inactive_file 1\ntotal_inactive_file {2 * GIB}\n",
            },
            8,
        ),
        ("0::/\n", {"memory.max": f"{GIB}\n", "memory.current": f"{2 * GIB}\n"}, 0),
    ],
)
def test_the_free_memory_is_the_least_of_the_machine_and_of_the_groups(tmp_path, groups, files, gib):
    root = machine(tmp_path, groups, files)
    (root / "proc/meminfo").write_text(f"MemTotal: 1\nMemAvailable:   {64 * (GIB >> 10)} kB\n")
    assert available_bytes(root) == gib * GIB


def test_the_weights_need_twice_their_size(tmp_path):
    root = machine(tmp_path / "root", "0::/\n", {})
    model = tmp_path / "model"
    model.mkdir()
    for name, size in (("a.safetensors", 1 * GIB), ("b.safetensors", 3 * GIB), ("pytorch_model.bin", 40 * GIB)):
        with (model / name).open("wb") as file:
            file.truncate(size)
    assert weight_bytes(model) == 4 * GIB
    for free, fits in ((8 * GIB, True), (8 * GIB - 1024, False)):
        (root / "proc/meminfo").write_text(f"MemAvailable: {free >> 10} kB\n")
        if fits:
            check_host_memory("m", model, root)
        else:
            with pytest.raises(ServingError, match=r"need up to 8\.0 GiB of the host's memory, and 8\.0 GiB are free"):
                check_host_memory("m", model, root)


def test_a_model_of_the_hub_has_no_folder(tmp_path):
    assert weight_bytes(tmp_path / "org/model") == 0
