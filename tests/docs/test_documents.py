"""What the documents tell a reader to type works as it stands. `tests.docs.blocks` says which blocks are run."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml
from e2e.cluster import ClusterUnavailableError
from e2e.cluster.programs import packages
from e2e.starting import give_up
from tests import ports
from tests.docs.blocks import DOCUMENTS, ROOT, blocks, mistakes
from tests.docs.reader import PORTS, Reader


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_block_says_whether_it_is_run(document: Path) -> None:
    assert [mistake for block in blocks(document.read_text()) for mistake in mistakes(block)] == []


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "document",
    [path for path in DOCUMENTS if any(block.is_run for block in blocks(path.read_text()))],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_every_command_works(document: Path, tmp_path: Path) -> None:
    script = [block for block in blocks(document.read_text()) if block.is_run]
    if any(block.goes_on for block in script):
        ports.need(PORTS, "the document")
    if any("curl " in block.text for block in script):
        _have_curl()
    reader = Reader(tmp_path)
    try:
        for block in script:
            reader.run(block)
    finally:
        reader.leave()


def _have_curl() -> None:
    try:
        packages.ensure([packages.CURL])
    except ClusterUnavailableError as error:
        give_up(error)


def test_the_documents_are_listed() -> None:
    names = {str(path.relative_to(ROOT)) for path in DOCUMENTS}
    assert {"README.md", "examples/assistant/README.md", "examples/llama-70b/README.md"} <= names
    started = [path for path in DOCUMENTS if any(block.goes_on and block.is_run for block in blocks(path.read_text()))]
    assert ROOT / "examples/assistant/README.md" in started


VALUES: dict[str, Any] = yaml.safe_load((ROOT / "charts/argosy/values.yaml").read_text())


@pytest.mark.parametrize(
    "document",
    [path for path in DOCUMENTS if path.parent.name != "reference"],  # its pages name fields of resources alike
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_the_charts_values_are_named_as_they_are(document: Path) -> None:
    names = re.findall(r"`([a-zA-Z]+(?:[.][a-zA-Z]+)+)`", document.read_text())
    meant = [name for name in names if name.split(".")[0] in VALUES or name.endswith(".enabled")]
    assert [name for name in meant if not _is_value(name)] == []


def _is_value(name: str) -> bool:
    value: Any = VALUES
    for part in name.split("."):
        if not isinstance(value, dict) or part not in value:
            return False
        value = value[part]
    return True
