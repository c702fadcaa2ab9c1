"""Both servers on one repository."""

import shutil
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from benchmarks.comparison.load import MODELS, needed
from tests.peers.argosy import argosy
from tests.peers.server import Server
from tests.peers.triton import triton

CACHE = "--cache-config=local,size=268435456"


@contextmanager
def served(
    models: Iterable[str], python: str = sys.executable, isolation: str | None = None, cores: str = ""
) -> Iterator[tuple[Server, Server]]:
    """Yield Argosy and Triton, on a repository of these models and of those that they call.

    `python` runs Argosy. `isolation` "thread" or "process" says where Argosy runs the models; None leaves it to the
    default, which is a process of their own. `cores`: those that Argosy may use, all by default.
    """
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        repository = _repository(Path(folder) / "models", models, isolation)
        flags = (CACHE, "--allow-client-shm=true")
        ours = argosy(repository, *flags, log=Path(folder) / "argosy.log", python=python, cores=cores)
        stack.callback(ours.stop)
        theirs = triton(repository, CACHE, log=Path(folder) / "triton.log")
        stack.callback(theirs.stop)
        yield ours, theirs


def _repository(folder: Path, models: Iterable[str], isolation: str | None) -> Path:
    for model in needed(models):
        shutil.copytree(MODELS / model, folder / model)
        config = folder / model / "config.pbtxt"
        text = config.read_text()
        if isolation and 'backend: "python"' in text:
            # Triton lets parameters pass that it does not know.
            config.write_text(f'{text}parameters {{ key: "ISOLATION" value {{ string_value: "{isolation}" }} }}\n')
    return folder
