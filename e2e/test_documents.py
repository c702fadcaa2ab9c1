"""What the pages about Kubernetes tell a reader to type works on a real cluster, in their order.

Their blocks of kubectl alone are run, in one folder that holds the manifests that the first page shows first. Of these
one thing is replaced: where the model is, since there is no models.example.com. Other manifests are ones that the
operator takes.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from tests.docs.blocks import ROOT, Block, blocks

from argosy.api import parse_documents
from e2e.asking.namespace import Namespace
from e2e.cluster import Cluster

pytestmark = pytest.mark.timeout(900)

PAGES = tuple(
    ROOT / "docs" / page
    for page in ("how-to/kubernetes.md", "how-to/pods.md", "explanation/operator.md", "how-to/troubleshooting.md")
)
MODEL = r"https://models\.example\.com/(\w+)/\S+"
BLOCK_S = 400.0


def _blocks() -> list[Block]:
    return [block for page in PAGES for block in blocks(page.read_text())]


def _script() -> list[Block]:
    shown = (block for block in _blocks() if block.label in ("sh", "console"))
    return [block for block in shown if all(command.startswith("kubectl ") for command in block.commands)]


class Reader:
    """Types one block after the other, in one folder."""

    def __init__(self, folder: Path, cluster: Cluster, namespace: Namespace) -> None:
        self._folder = folder
        kubeconfig = Path(shutil.copy(cluster.kubeconfig, folder / "kubeconfig"))
        kubectl = cluster.binaries.path("kubectl")
        path = f"{kubectl.parent}{os.pathsep}{os.environ['PATH']}"
        self._environment = {**os.environ, "KUBECONFIG": str(kubeconfig), "PATH": path}
        self.type(Block(0, "sh", f"kubectl config set-context --current --namespace={namespace.name}\n"))

    def type(self, block: Block) -> str:
        """Run a block; what it printed. Fails where it does not succeed."""
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", block.text],
            cwd=self._folder, env=self._environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=BLOCK_S,
        )  # fmt: skip
        assert done.returncode == 0, f"line {block.line} ended with {done.returncode}:\n{block.text}\n{done.stdout}"
        return done.stdout


@pytest.fixture
def reader(tmp_path: Path, cluster: Cluster, namespace: Namespace) -> Reader:
    return Reader(tmp_path, cluster, namespace)


def test_every_command_works(reader: Reader, tmp_path: Path, storage: str, namespace: Namespace) -> None:
    shown, *others = [block.text for block in _blocks() if block.label == "yaml"]
    assert [parse_documents(other, "page.md")[1] for other in others] == [[] for _ in others]
    manifests, replaced = re.subn(MODEL, rf"{storage}/models/\1.tar", shown)
    assert replaced == 1
    pool, _, model = manifests.partition("---\n")
    (tmp_path / "pool.yaml").write_text(pool)
    (tmp_path / "model.yaml").write_text(model)
    script = _script()
    assert len(script) >= 4
    for block in script:
        try:
            reader.type(block)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{namespace.story()}") from None


def test_a_command_that_fails_is_noticed(reader: Reader) -> None:
    with pytest.raises(AssertionError, match="line 7 ended with"):
        reader.type(Block(7, "console", "kubectl get nothing-of-that-name\ntrue\n"))
