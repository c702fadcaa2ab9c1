"""An authority, and files of a port that tests replace."""

from pathlib import Path

import pytest
from tests.runtime.authority import Authority

from argosy_runtime.frontends.tls.files import TlsFiles


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def files(tmp_path: Path, authority: Authority) -> TlsFiles:
    """Return files with a certificate whose subject is `first`."""
    files = TlsFiles(certificate=str(tmp_path / "port.crt"), key=str(tmp_path / "port.key"), flags="http")
    replace_files(files, authority.issue("first"))
    return files


def replace_files(files: TlsFiles, issued: tuple[Path, Path]) -> None:
    """Put a certificate and its key where the port has its own."""
    Path(files.certificate).write_bytes(issued[0].read_bytes())
    Path(files.key).write_bytes(issued[1].read_bytes())
