"""Layers of an image, each laid over those before."""

import io
import tarfile
from pathlib import Path

import pytest

from argosy_agent.transfer.budget import Budget
from argosy_agent.transfer.errors import StorageError
from argosy_agent.transfer.stores.oci.layers import lay

Entry = tuple[str, bytes, bytes | str]
FILE, FOLDER, SYMLINK, HARD = tarfile.REGTYPE, tarfile.DIRTYPE, tarfile.SYMTYPE, tarfile.LNKTYPE


def packed(*entries: Entry) -> bytes:
    """Return a compressed archive of (name, type, content or target)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tarred:
        for name, kind, content in entries:
            member = tarfile.TarInfo(name)
            member.type, member.mode = kind, 0o755
            if isinstance(content, str):
                member.linkname = content
            else:
                member.size = len(content)
            tarred.addfile(member, io.BytesIO(content) if isinstance(content, bytes) else None)
    return out.getvalue()


def file(name: str, content: bytes) -> Entry:
    """Return a file."""
    return name, FILE, content


def folder(name: str) -> Entry:
    """Return a folder."""
    return name, FOLDER, b""


def link(name: str, target: str) -> Entry:
    """Return a symbolic link."""
    return name, SYMLINK, target


def hard(name: str, target: str) -> Entry:
    """Return a hard link."""
    return name, HARD, target


CASES: dict[str, tuple[list[list[Entry]], dict[str, str]]] = {
    "a file over a symlink leaves what that led to": (
        [[file("v1/w", b"one"), link("w", "v1/w")], [file("w", b"two")]],
        {"v1/w": "one", "w": "two"},
    ),
    "a file over one of two hard links leaves the other": (
        [[file("a", b"one"), hard("b", "a")], [file("b", b"two")]],
        {"a": "one", "b": "two"},
    ),
    "hard links over hard links": (
        [[file("a", b"one"), hard("b", "a")], [file("a", b"two"), hard("b", "a")]],
        {"a": "two", "b": "two"},
    ),
    "a file over a folder": ([[folder("a"), file("a/x", b"one")], [file("a", b"two")]], {"a": "two"}),
    "a folder over a file": ([[file("a", b"one")], [folder("a"), file("a/x", b"two")]], {"a/x": "two"}),
    "a file below what was a file": ([[file("a", b"one")], [file("a/x", b"two")]], {"a/x": "two"}),
    "a folder over a symlink to one": (
        [[file("v1/w", b"one"), link("now", "v1")], [folder("now"), file("now/w", b"two")]],
        {"v1/w": "one", "now/w": "two"},
    ),
    "a folder over a folder": (
        [[folder("a"), file("a/x", b"1")], [folder("a"), file("a/y", b"2")]],
        {"a/x": "1", "a/y": "2"},
    ),
    "through a symlink to a folder": (
        [[file("v1/w", b"one"), link("now", "v1")], [file("now/x", b"two")]],
        {"v1/w": "one", "v1/x": "two", "now/w": "one", "now/x": "two"},
    ),
    "a whiteout": ([[file("m/old", b"1"), file("m/w", b"1")], [file("m/.wh.old", b"")]], {"m/w": "1"}),
    "an opaque folder": (
        [
            [file("m/old", b"1"), file("m/sub/old", b"1"), file("w", b"1")],
            [file("m/.wh..wh..opq", b""), file("m/new", b"2")],
        ],
        {"m/new": "2", "w": "1"},
    ),
    "whiteouts hide lower layers alone": (
        [
            [file("m/old", b"1"), file("m/sub/old", b"1")],
            [
                file("m/new", b"2"),
                file("m/sub/x", b"2"),
                file("m/.wh..wh..opq", b""),
                file("n", b"2"),
                file(".wh.n", b""),
            ],
        ],
        {"m/new": "2", "m/sub/x": "2", "n": "2"},
    ),
    "names as many tools write them": (
        [[folder("./"), file("./a", b"1")], [folder("."), file("./a", b"2")]],
        {"a": "2"},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_layers(tmp_path: Path, case: str) -> None:
    layers, expected = CASES[case]
    root = tmp_path / "copy"
    root.mkdir()
    for entries in layers:
        layer = tmp_path / "layer"
        layer.write_bytes(packed(*entries))
        lay(layer, root, Budget())
    result = {path for path in root.rglob("*") if path.is_file()} | set(root.glob("*/*"))
    assert {p.relative_to(root).as_posix(): p.read_text() for p in result if p.is_file()} == expected


@pytest.mark.parametrize("name", ["../outside", "s/outside", "s/.wh.outside", "s/.wh..wh..opq"])
def test_nothing_outside_is_touched(tmp_path: Path, name: str) -> None:
    """`s` leads out of the folder only after a second layer has put a folder where a link was."""
    root = tmp_path / "copy"
    root.mkdir()
    (tmp_path / "outside").write_text("mine")
    layers = [
        packed(folder("p/q/r"), link("d", "p/q/r"), link("s", "d/../../../")),
        packed(folder("d")),
        packed(file(name, b"theirs")),
    ]
    layer = tmp_path / "layer"
    with pytest.raises((tarfile.TarError, StorageError)):  # noqa: PT012
        for body in layers:
            layer.write_bytes(body)
            lay(layer, root, Budget())
    assert (tmp_path / "outside").read_text() == "mine"
