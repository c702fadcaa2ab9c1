"""Processes (ranks) of a model that is split over several devices, one for each.

The instance's own process is rank 0: it takes the requests, and the library passes on to the others what they need to
follow. Those run `main` here, read from their standard input what to load, and end with rank 0, however that ends. If
one of them ends before, rank 0 ends too, and its server starts all of them again.
"""

import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import BinaryIO, cast

import torch
import transformers
from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.backends import isolation
from argosy_runtime.backends.contract import InstanceSpec, Isolation
from argosy_runtime.errors import internal, invalid

from .opening import check_split, open_model

LOAD_TIMEOUT = timedelta(hours=2)
END_TIMEOUT_S = 15.0
"""Seconds in which the other ranks must end once the batch has."""
_POLL_S = 0.1
_RANK = f"from {__name__} import main; main()"


@dataclass(frozen=True, slots=True)
class Rank:
    """One rank of an instance; the ranks find each other through a file."""

    spec: InstanceSpec
    devices: tuple[str, ...]
    rank: int
    meeting: Path

    def packed(self) -> bytes:
        """Return the bytes that `unpacked` reads."""
        spec = self.spec
        words = (spec.version, str(spec.model_dir), str(spec.version_dir), spec.name, spec.kind, spec.device_id)
        return pickle.dumps((spec.config.SerializeToString(), words, self.devices, self.rank, str(self.meeting)))

    @classmethod
    def unpacked(cls, pipe: BinaryIO) -> "Rank":
        """Read the rank from a pipe."""
        config, (version, model_dir, version_dir, *rest), devices, rank, meeting = pickle.load(pipe)
        spec = InstanceSpec(ModelConfig.FromString(config), version, Path(model_dir), Path(version_dir), *rest)
        return cls(spec, devices, rank, Path(meeting))

    def join(self) -> None:
        """Join the process group. Blocks until all ranks have; raises PyTorch's exceptions."""
        device = torch.device(self.devices[self.rank])
        on_gpu = device.type == "cuda"
        os.environ.update(
            RANK=str(self.rank), LOCAL_RANK=str(device.index or 0), WORLD_SIZE=str(len(self.devices))
        )  # the library binds itself to the device LOCAL_RANK
        if on_gpu:
            torch.cuda.set_device(device)
        torch.distributed.init_process_group(
            "nccl" if on_gpu else "gloo",
            init_method=self.meeting.as_uri(),
            rank=self.rank,
            world_size=len(self.devices),
            device_id=device if on_gpu else None,
            timeout=LOAD_TIMEOUT,
        )


class Ranks:
    """The other ranks, for rank 0."""

    def __init__(self, spec: InstanceSpec, devices: tuple[str, ...], folder: tempfile.TemporaryDirectory[str]) -> None:
        self._name = spec.name
        self._devices = devices
        self._folder = folder
        self._ending = threading.Event()
        self._processes = [self._begin(Rank(spec, devices, rank, self.meeting)) for rank in range(1, len(devices))]

    @property
    def meeting(self) -> Path:
        """The file through which the ranks find each other."""
        return Path(self._folder.name) / "ranks"

    @classmethod
    def start(cls, spec: InstanceSpec, devices: tuple[str, ...]) -> "Ranks":
        """Start the other ranks, and become rank 0. Raises ServingError where the model cannot be split."""
        if isolation(spec.config) is Isolation.THREAD:
            raise invalid(
                f"model '{spec.config.name}': on {len(devices)} GPUs it needs a process of its own; leave out the "
                "parameter ISOLATION"
            )
        try:
            config = transformers.AutoConfig.from_pretrained(str(spec.version_dir), local_files_only=True)
        except Exception as error:
            raise internal(f"failed to load '{spec.version_dir}' for model '{spec.config.name}': {error}") from error
        check_split(spec.config.name, config.get_text_config(), len(devices))
        ranks = cls(spec, devices, tempfile.TemporaryDirectory(prefix="argosy-ranks-"))
        try:
            Rank(spec, devices, 0, ranks.meeting).join()
        except BaseException as error:
            ranks.kill()
            raise internal(f"model instance '{spec.name}': its {len(devices)} ranks cannot meet: {error}") from error
        return ranks

    def expect_end(self) -> None:
        """Allow the other ranks to end."""
        self._ending.set()

    def close(self) -> None:
        """Wait for the other ranks to end with the batch, and kill those that do not."""
        self.expect_end()
        until = time.monotonic() + END_TIMEOUT_S
        for process in self._processes:
            try:
                process.wait(max(0.0, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.kill()
        self._forget()

    def kill(self) -> None:
        """Kill the other ranks."""
        self.expect_end()
        for process in self._processes:
            process.kill()
        self._forget()

    def _forget(self) -> None:
        for process in self._processes:
            process.wait()
            cast(BinaryIO, process.stdin).close()
        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()
        self._folder.cleanup()

    def _begin(self, rank: Rank) -> "subprocess.Popen[bytes]":
        # A group of its own: a terminal's Ctrl-C is for the server, which ends its instances in order.
        process = subprocess.Popen([sys.executable, "-c", _RANK], stdin=subprocess.PIPE, process_group=0)
        pipe = cast(BinaryIO, process.stdin)
        pipe.write(rank.packed())
        pipe.flush()
        threading.Thread(target=self._watch, args=(process, rank.rank), daemon=True).start()
        return process

    def _watch(self, process: "subprocess.Popen[bytes]", rank: int) -> None:
        code = process.wait()
        if not self._ending.is_set():
            # Requests that wait for that rank would wait for hours.
            where = self._devices[rank]
            print(f"model instance '{self._name}': its rank on {where} ended with {code}", file=sys.stderr, flush=True)
            os._exit(1)


def main() -> None:
    """Run one of the other ranks, until the batch ends or rank 0 is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    rank = Rank.unpacked(sys.stdin.buffer)
    threading.Thread(target=_end_with, args=(sys.stdin.buffer,), daemon=True).start()
    rank.join()
    manager = open_model(rank.spec, rank.devices).manager
    manager.start()
    while manager.is_running():
        time.sleep(_POLL_S)
    manager.destroy()


def _end_with(pipe: BinaryIO) -> None:
    pipe.read()
    os._exit(0)
