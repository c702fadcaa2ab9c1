"""AOTInductor packages of other machines are refused before they run, as running them would crash the server."""

import platform
import zipfile
from pathlib import Path

import pytest
import torch

from argosy_runtime.backends.pytorch import packages
from argosy_runtime.errors import ErrorKind, ServingError


def refused(monkeypatch: pytest.MonkeyPatch, metadata: dict[str, str], capability: str = "AVX2") -> ServingError | None:
    monkeypatch.setattr(packages, "metadata_of", lambda path: metadata)
    monkeypatch.setattr(packages, "_loader", lambda *_: None)
    monkeypatch.setattr(torch.backends.cpu, "get_cpu_capability", lambda: capability)
    try:
        packages.loaded(Path("model.pt2"), -1)
    except ServingError as error:
        return error
    return None


@pytest.mark.parametrize(
    ("isa", "capability", "runs"),
    [
        ("AVX2", "AVX2", True),
        ("AVX2", "AVX512", True),
        ("AVX512 AVX512_VNNI AMX_TILE", "AVX512", True),
        ("AVX512 AVX512_VNNI AMX_TILE", "AVX2", False),
        ("AVX2", "DEFAULT", False),
        ("", "DEFAULT", True),
        ("ASIMD", "NO AVX", True),
    ],
)
def test_a_package_runs_where_its_vectors_are(
    monkeypatch: pytest.MonkeyPatch, isa: str, capability: str, runs: bool
) -> None:
    error = refused(monkeypatch, {"AOTI_MACHINE": platform.machine(), "AOTI_CPU_ISA": isa}, capability)

    assert (error is None) is runs
    if error is not None:
        assert error.kind is ErrorKind.UNAVAILABLE
        assert capability in str(error)
        assert "cpp.simdlen" in str(error)


def test_a_package_of_another_kind_of_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    error = refused(monkeypatch, {"AOTI_MACHINE": "s390x"})

    assert error is not None
    assert "compiled for s390x" in str(error)


def test_a_package_is_identified_by_what_is_in_it(tmp_path: Path) -> None:
    for name, entry in (("package.pt", "model/data/aotinductor/model/a.so"), ("script.pt", "archive/constants.pkl")):
        with zipfile.ZipFile(tmp_path / name, "w") as archive:
            archive.writestr(entry, "")
    (tmp_path / "none.pt").write_bytes(b"no archive")

    assert packages.is_package(tmp_path / "package.pt")
    assert not packages.is_package(tmp_path / "script.pt")
    assert not packages.is_package(tmp_path / "none.pt")
