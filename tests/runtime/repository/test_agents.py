"""The checksum agent, in Triton's words; every other agent is refused by its name."""

import hashlib
from pathlib import Path

import pytest

from argosy_runtime.errors import ErrorKind, ServingError
from argosy_runtime.modelconfig import parse_text
from argosy_runtime.repository.folders.layout import read_folder
from argosy_runtime.repository.preparing.agents import check_sums, has_agents, run_agents

CONTENT = b"weights" * 1000
MD5 = hashlib.md5(CONTENT, usedforsecurity=False).hexdigest()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "m" / "1").mkdir(parents=True)
    (tmp_path / "m" / "1" / "model.bin").write_bytes(CONTENT)
    return tmp_path / "m"


@pytest.mark.parametrize("algorithm", ["MD5", "md5", "Md5"])
def test_a_file_as_it_should_be(folder: Path, algorithm: str) -> None:
    check_sums(folder, {f"{algorithm}:1/model.bin": MD5})


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("MD5:1/model.bin", "00", f"Mismatched MD5 hash for file 1/model.bin, expect: 00, got: {MD5}"),
        (
            "MD5:1/model.bin",
            MD5.upper(),
            f"Mismatched MD5 hash for file 1/model.bin, expect: {MD5.upper()}, got: {MD5}",
        ),
        ("1/model.bin", MD5, "failed to parse key: 1/model.bin"),
        ("SHA256:1/model.bin", MD5, "Unsupported checksum algorithm: SHA256"),
        ("MD5:1/nope", MD5, "failed to open text file for read 1/nope: No such file or directory"),
        ("MD5:1", MD5, "failed to open text file for read 1: Is a directory"),
        ("MD5:../m/1/model.bin", MD5, "'../m/1/model.bin' must be a path inside the model's folder"),
        ("MD5:/etc/passwd", MD5, "'/etc/passwd' must be a path inside the model's folder"),
        ("MD5:1/\0", MD5, "failed to open text file for read 1/\0: embedded null byte"),
    ],
)
def test_what_is_refused(folder: Path, key: str, value: str, message: str) -> None:
    with pytest.raises(ServingError) as caught:
        check_sums(folder, {key: value})
    assert caught.value.message == message


def test_another_agent(folder: Path) -> None:
    config = parse_text('model_repository_agents { agents [ { name: "decrypt" } ] }')
    assert has_agents(config)
    with pytest.raises(ServingError) as caught:
        run_agents(read_folder(folder), config)
    assert caught.value.kind is ErrorKind.UNSUPPORTED
    assert "repository agent 'decrypt' of model 'm' is not one of this server's, which are: checksum" in str(
        caught.value
    )
