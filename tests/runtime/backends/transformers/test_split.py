"""A language model that is split over several devices: here over several CPUs, with a process for each."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest
from google.protobuf import text_format
from tests.runtime.backends.language_model import save_model
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.backends import transformers as backend
from argosy_runtime.backends.contract import InstanceSpec
from argosy_runtime.backends.devices.gpus import gpus_of_model
from argosy_runtime.backends.transformers.opening import check_split, devices_of
from argosy_runtime.errors import ServingError

SCRIPT = Path(__file__).with_name("split_model.py")
PATIENCE_S = 120.0
PROMPTS = ("1 2 3 4 5", "9 8 7")


def config(**parameters: str) -> ModelConfig:
    """Return a model's configuration with these parameters."""
    spec = {"page_size": "4", "num_blocks": "64", "max_batch_tokens": "32", "decoding": "greedy", **parameters}
    model_config = ModelConfig(name="lm", backend="transformers")
    for name, value in spec.items():
        model_config.parameters[name].string_value = value
    return model_config


def spec(kind: str, device_id: int = 0, **parameters: str) -> InstanceSpec:
    """Return an instance of such a model."""
    return InstanceSpec(config(**parameters), 1, Path(), Path(), "lm_0", kind, device_id)


@pytest.mark.parametrize(
    ("instance", "visible", "devices"),
    [
        (spec("KIND_CPU"), 4, ("cpu",)),
        (spec("KIND_GPU", 2), 4, ("cuda:2",)),
        (spec("KIND_MODEL"), 4, ("cuda:0", "cuda:1", "cuda:2", "cuda:3")),
        (spec("KIND_MODEL"), 0, ("cpu",)),
        (spec("KIND_MODEL", gpu_device_ids="1, 3"), 4, ("cuda:1", "cuda:3")),
        (spec("KIND_MODEL", gpu_device_ids="0"), 1, ("cuda:0",)),
        (spec("KIND_GPU", gpu_device_ids="1,3"), 4, ("cuda:0",)),
    ],
)
def test_devices(instance: InstanceSpec, visible: int, devices: tuple[str, ...]) -> None:
    assert devices_of(instance, visible) == devices


@pytest.mark.parametrize(
    ("ids", "reported"),
    [
        ("all", "parameter 'gpu_device_ids' is 'all', expected different GPUs, such as 0,1"),
        ("0,0", "is '0,0', expected different GPUs"),
        ("0,", "is '0,', expected different GPUs"),
        ("-1", "is '-1', expected different GPUs"),
        ("0,4", "names GPU 4, and this process can use 4, counted from 0"),
    ],
)
def test_gpus_that_are_none(ids: str, reported: str) -> None:
    with pytest.raises(ServingError) as raised:
        gpus_of_model(config(gpu_device_ids=ids), 4)
    assert reported in raised.value.message


def test_a_gpu_that_pytorch_cannot_use() -> None:
    with pytest.raises(ServingError, match=r"\(KIND_GPU\) needs CUDA"):
        devices_of(spec("KIND_GPU"), 0)


@pytest.mark.parametrize(("parts", "fits"), [(2, True), (4, True), (3, False), (8, False)])
def test_heads_are_split_evenly(parts: int, fits: bool) -> None:
    text = SimpleNamespace(
        model_type="llama", num_attention_heads=12, num_key_value_heads=4, base_model_tp_plan={"a": "b"}
    )
    if fits:
        check_split("lm", text, parts)
    else:
        with pytest.raises(ServingError, match=f"cannot be split over {parts} GPUs; give it one of 1, 2, 4$"):
            check_split("lm", text, parts)


def test_a_model_that_the_library_cannot_split() -> None:
    text = SimpleNamespace(model_type="gpt2", num_attention_heads=12, base_model_tp_plan=None)
    with pytest.raises(ServingError, match="no plan to split a gpt2 over 2 GPUs; give it one"):
        check_split("lm", text, 2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a tiny Llama with two key-value heads."""
    folder = tmp_path_factory.mktemp("split")
    save_model(folder / "1")
    (folder / "config.pbtxt").write_text(text_format.MessageToString(config()))
    return folder


class Split:
    """The script, loaded."""

    def __init__(self, folder: Path, *devices: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, str(SCRIPT), str(folder), *devices],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        self.first = self.line()
        self.ranks = [psutil.Process(int(word)) for word in self.line().split()[1:]]

    def line(self) -> str:
        """Return the next line that it prints; empty once it has ended."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()

    def ask(self, prompt: str) -> list[int]:
        """Return the tokens that follow a prompt's."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{prompt}\n")
        self.process.stdin.flush()
        result = self.line()
        assert result.startswith("tokens: "), result
        return [int(word) for word in result.split()[1:]]


Start = Callable[..., Split]


@pytest.fixture
def start(folder: Path) -> Iterator[Start]:
    """Yield a function that starts the script on these devices; kill what is left of it after the test."""
    started: list[Split] = []

    def begin(*devices: str) -> Split:
        started.append(Split(folder, *devices))
        return started[-1]

    yield begin
    for item in started:
        item.process.kill()
        for rank in item.ranks:
            if rank.is_running():
                rank.kill()
        item.process.communicate()


def _gone(processes: list[psutil.Process]) -> bool:
    return psutil.wait_procs(processes, timeout=PATIENCE_S)[1] == []


def test_a_split_model_answers_as_an_unsplit_one_and_ends_with_its_ranks(start: Start) -> None:
    full, split = start("cpu"), start("cpu", "cpu")
    assert (len(full.ranks), len(split.ranks)) == (0, 1)
    assert "runs on cpu, cpu, each with a share of every layer" in split.first
    assert [split.ask(prompt) for prompt in PROMPTS] == [full.ask(prompt) for prompt in PROMPTS]
    out, _ = split.process.communicate(timeout=PATIENCE_S)
    assert (out, split.process.returncode) == ("closed\n", 0)
    assert _gone(split.ranks)


def test_its_other_ranks_end_when_it_is_killed(start: Start) -> None:
    split = start("cpu", "cpu")
    split.ask(PROMPTS[0])
    split.process.kill()
    assert _gone(split.ranks)


def test_it_ends_when_another_rank_is_killed(start: Start) -> None:
    split = start("cpu", "cpu")
    split.ask(PROMPTS[0])
    split.ranks[0].send_signal(signal.SIGKILL)
    assert split.process.wait(PATIENCE_S) == 1


def test_what_cannot_be_split_is_refused_before_anything_starts(start: Start, folder: Path, tmp_path: Path) -> None:
    assert start("cpu", "cpu", "cpu").first == (
        "refused: model 'lm': 4 attention heads with 2 key-value heads cannot be split over 3 GPUs; give it one of 1, 2"
    )
    thread = config(ISOLATION="thread")
    (tmp_path / "config.pbtxt").write_text(text_format.MessageToString(thread))
    (tmp_path / "1").symlink_to(folder / "1")
    refused = Split(tmp_path, "cpu", "cpu")
    refused.process.communicate()
    assert refused.first.endswith("on 2 GPUs it needs a process of its own; leave out the parameter ISOLATION")


def test_without_a_gpu_an_instance_of_kind_model_is_on_the_cpu(folder: Path, host: Any) -> None:
    instance_spec = InstanceSpec(config(), 1, folder, folder / "1", "lm_0", "KIND_MODEL", 0)
    backend.load(instance_spec, host).close()
    ((level, reported),) = host.lines
    assert level == "info"
    assert reported.startswith("model instance 'lm_0' runs on cpu; it keeps 256 tokens of cache")
