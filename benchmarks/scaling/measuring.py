"""`python -m benchmarks.scaling.measuring`: service curves of the real runtime, kept in `curves.json`.

Models of examples/assistant are served by `argosy serve` on one core, which is their device, and asked with batch after
batch. What an execution takes is the CPU time that the server spends on it, so that it matters little what else this
machine does; instances that execute at once share the core.
"""

import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import tritonclient.grpc as triton
from tests.peers.argosy import ROOT, argosy
from tests.peers.server import Server

CURVES = Path(__file__).parent / "curves.json"
BATCHES = (1, 2, 4, 8)
INSTANCES = (1, 2, 3)
_PROMPT, _TOKENS = 128, 48
_SEQUENCES = (1, 2, 4, 8)
_ROUNDS, _REPEATS = 7, 6
_OF_A_PROCESS = 2
_ONE_THREAD = 'parameters { key: "intra_op_thread_count" value { string_value: "1" } }'

_CORE = max(os.sched_getaffinity(0))
"""The device: a server has one core to itself, which its instances share."""

Inputs = Callable[[int], list[triton.InferInput]]


def main() -> None:
    """Measure the models that are named, or all, and write."""
    os.environ["OMP_NUM_THREADS"] = "1"
    measured: dict[str, Callable[[], dict[str, Any]]] = {
        "embed": lambda: batching("embed", _embed),
        "safety": lambda: batching("safety", _safety),
        "llm": generating,
    }
    curves = json.loads(CURVES.read_text()) if CURVES.exists() else {"models": {}}
    curves["machine"] = f"one core of {_cpu()}"
    for name in sys.argv[1:] or measured:
        curves["models"][name] = measured[name]()
        print(name, curves["models"][name])
        CURVES.write_text(json.dumps(curves, indent=1) + "\n")


def batching(name: str, inputs: Inputs) -> dict[str, Any]:
    """Return the seconds by rows, how much slower several instances are, and how much executions vary."""
    times: dict[int, list[float]] = {}
    with serving(name, 1) as server:
        for rows in BATCHES:
            times[rows] = [_executed(server, name, inputs(rows), 1) for _ in range(_ROUNDS)]
    curve = {rows: statistics.median(seconds) for rows, seconds in times.items()}
    slowdown = [1.0]
    for count in INSTANCES[1:]:
        with serving(name, count) as server:
            together = statistics.median(_executed(server, name, inputs(8), count) for _ in range(_ROUNDS))
        slowdown.append(max(1.0, count * together / curve[8]))
    return {
        "seconds": {str(rows): round(seconds, 6) for rows, seconds in curve.items()},
        "slowdown": [round(ratio, 3) for ratio in slowdown],
        "variation": round(
            statistics.median(statistics.stdev(samples) / curve[rows] for rows, samples in times.items()), 3
        ),
    }


def _executed(server: Server, name: str, inputs: list[triton.InferInput], clients: int) -> float:
    """Return the CPU seconds of one execution, where so many clients send requests in a closed loop."""

    def ask() -> None:
        with triton.InferenceServerClient(server.grpc) as client:
            for _ in range(_REPEATS):
                client.infer(name, inputs)

    begun = _cpu_time(server)
    _together(ask, clients)
    return (_cpu_time(server) - begun) / _REPEATS / clients


def _cpu_time(server: Server) -> float:
    """Return the seconds that all its threads have run: the clock that Linux has of every process."""
    every = [server.process.pid, *(child.pid for child in psutil.Process(server.process.pid).children(recursive=True))]
    return sum(time.clock_gettime((~pid << 3) | _OF_A_PROCESS) for pid in every)


def _together(work: Callable[[], None], count: int) -> None:
    threads = [threading.Thread(target=work) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def generating() -> dict[str, Any]:
    """Return the seconds of a step by how many sequences run, and of a token of the prompt."""
    with serving("llm", 1) as server:
        _generated(server, 1, _TOKENS, 8)
        long, short = (
            statistics.median(_generated(server, 1, 1, prompt) for _ in range(_ROUNDS)) for prompt in (_PROMPT, 8)
        )
        steps = {
            count: statistics.median(_generated(server, count, _TOKENS, 8) for _ in range(3)) / _TOKENS
            for count in _SEQUENCES
        }
    return {
        "step_s": {str(count): round(seconds, 6) for count, seconds in steps.items()},
        "prompt_token_s": round(max(0.0, (long - short) / (_PROMPT - 8)), 9),
    }


def _generated(server: Server, sequences: int, tokens: int, prompt: int) -> float:
    """Return the CPU seconds until as many sequences, begun together, have their tokens."""

    def ask() -> None:
        with triton.InferenceServerClient(server.grpc) as client:
            done = threading.Event()
            client.start_stream(lambda result, error: done.set() if error or _is_last(result) else None)
            client.async_stream_infer("llm", _llm(prompt, tokens), enable_empty_final_response=True)
            done.wait(60)
            client.stop_stream()

    begun = _cpu_time(server)
    _together(ask, sequences)
    return _cpu_time(server) - begun


def _is_last(result: triton.InferResult) -> bool:
    return bool(result.get_response().parameters["triton_final_response"].bool_param)


@contextmanager
def serving(name: str, instances: int) -> Iterator[Server]:
    """Serve one model of the assistant, with so many instances."""
    with tempfile.TemporaryDirectory() as folder:
        rendered = Path(folder, "rendered")
        command = [Path(sys.executable).parent / "argosy", "render", "-f", ROOT / "examples/assistant", "-o", rendered]
        subprocess.run(command, check=True, capture_output=True)
        (config,) = rendered.rglob(f"{name}/config.pbtxt")
        text = config.read_text()
        text = text.replace('backend: "onnxruntime"', f'backend: "onnxruntime"\n{_ONE_THREAD}')
        text = re.sub(r"instance_group\s*[\[{].*?\n[\]}]\n?", "", text, flags=re.DOTALL)
        config.write_text(f"{text}\ninstance_group {{ kind: KIND_CPU count: {instances} }}\n")
        flags = ("--model-control-mode=explicit", f"--load-model={name}", "--exit-on-error=false")
        server = argosy(config.parents[1], *flags, log=Path(folder, "log"), wait_for="/v2/health/live")
        try:
            _load(server, name)
            _prefer(server)
            yield server
        finally:
            server.stop()


def _load(server: Server, name: str, tries: int = 3) -> None:
    """Load a model; try again where several instances that import transformers at once failed."""
    with triton.InferenceServerClient(server.grpc) as client:
        for _ in range(tries):
            if client.is_model_ready(name):
                return
            client.load_model(name)
    raise RuntimeError(f"{name} does not load: {server.tail()}")


def _prefer(server: Server) -> None:
    """Raise the priority of the server, where that is allowed: a curve is of a device that nothing else uses."""
    for thread in Path("/proc").glob(f"{server.process.pid}/task/*"):
        with suppress(PermissionError, ProcessLookupError):
            os.sched_setaffinity(int(thread.name), {_CORE})
            os.setpriority(os.PRIO_PROCESS, int(thread.name), -15)


def _tensor(name: str, values: np.ndarray[Any, Any], datatype: str) -> triton.InferInput:
    tensor = triton.InferInput(name, list(values.shape), datatype)
    tensor.set_data_from_numpy(values)
    return tensor


def _embed(rows: int) -> list[triton.InferInput]:
    ids = np.random.default_rng(1).integers(1000, 20000, (rows, 128))
    return [_tensor("embed_ids", ids, "INT64"), _tensor("embed_mask", np.ones_like(ids), "INT64")]


def _safety(rows: int) -> list[triton.InferInput]:
    vectors = np.random.default_rng(1).normal(size=(rows, 384)).astype(np.float32)
    return [
        _tensor("embedding", vectors, "FP32"),
        _tensor("request_output_len", np.full((rows, 1), 8, np.int32), "INT32"),
    ]


def _llm(prompt: int, tokens: int) -> list[triton.InferInput]:
    ids = np.random.default_rng(1).integers(4, 1500, (1, prompt)).astype(np.int32)
    return [_tensor("input_ids", ids, "INT32"), _tensor("request_output_len", np.array([[tokens]], np.int32), "INT32")]


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.machine())


if __name__ == "__main__":
    main()
