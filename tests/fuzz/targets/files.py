"""Files of models: their archives, and what is read of files before the libraries that serve them."""

import io
import os
import struct
import tarfile
import tempfile
import zipfile
from collections.abc import Iterator
from pathlib import Path

from tests.fuzz.target import Target

from argosy_agent.transfer.archives import BROKEN, unpack
from argosy_agent.transfer.budget import Budget
from argosy_agent.transfer.errors import StorageError
from argosy_runtime.backends.adapters import safetensors
from argosy_runtime.backends.fil import contents
from argosy_runtime.repository.preparing.labels import label_lines
from argosy_runtime.tensors import StringsError, join_strings, split_strings
from argosy_runtime.tensors.strings import string_count

_MEMORY = "/dev/shm"
"""Where files are written, since there are thousands in a second."""
_TYPES = {
    b"f": tarfile.REGTYPE,
    b"d": tarfile.DIRTYPE,
    b"s": tarfile.SYMTYPE,
    b"h": tarfile.LNKTYPE,
    b"c": tarfile.CHRTYPE,
    b"p": tarfile.FIFOTYPE,
}


def members(data: bytes) -> None:
    """Unpack a tar archive with a member for each line: a letter for its type, its name, a tab, where it links to."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for line in data.split(b"\n"):
            name, _, link = line[1:].decode("utf-8", "surrogateescape").partition("\t")
            member = tarfile.TarInfo(name)
            member.type, member.linkname = _TYPES.get(line[:1], tarfile.REGTYPE), link
            archive.addfile(member)
    _unpack("m.tar", packed.getvalue())


def names(data: bytes) -> None:
    """Unpack a zip archive with a file for each line, its name."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name in dict.fromkeys(data.decode("utf-8", "replace").split("\n")):
            archive.writestr(zipfile.ZipInfo(name), b"content")
    _unpack("m.zip", packed.getvalue())


def archive(data: bytes) -> None:
    """Unpack an archive. The first line is the end of its name."""
    suffix, _, content = data.partition(b"\n")
    _unpack("m" + {b"zip": ".zip", b"gz": ".tar.gz"}.get(suffix, ".tar"), content)


def _unpack(name: str, content: bytes) -> None:
    def refuse(size: int, here: int) -> None:
        if size > 1 << 22:
            raise StorageError("no more room")

    with tempfile.TemporaryDirectory(dir=_MEMORY) as top:
        folder = Path(top, "model")
        folder.mkdir()
        (folder / name).write_bytes(content)
        try:
            unpack(folder, Budget(refuse))
        except (*BROKEN, OSError, StorageError):
            links = []
        else:
            links = [path for path in folder.rglob("*") if path.is_symlink()]
        assert list(Path(top).iterdir()) == [folder]
        assert all(Path(os.path.realpath(path)).is_relative_to(folder) for path in links), links


def _member_seeds() -> Iterator[bytes]:
    yield b"dm\nfm/1/model.onnx\nfm/config.pbtxt"
    yield b"f../a\nf/etc/a\nsm/a\t../../b\nhm/c\t/etc/passwd\ncx\npy"
    yield b"sa\tb\nsb\ta\nfa/c\nd.top\nf.archive\nf._x\nd__MACOSX"


def _name_seeds() -> Iterator[bytes]:
    yield b"m/1/model.onnx\nm/config.pbtxt\nm/"
    yield b"../a\n/etc/a\n..\n.\n\nC:\\a\nm//b"


def _archive_seeds() -> Iterator[bytes]:
    for suffix, mode in ((b"tar", "w"), (b"gz", "w:gz")):
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode=mode) as tarred:
            tarred.addfile(tarfile.TarInfo("m/model.onnx"))
        content = packed.getvalue()
        yield suffix + b"\n" + (content[:1536] if suffix == b"tar" else content)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as zipped:
        zipped.writestr("m/model.onnx", b"content")
    yield b"zip\n" + packed.getvalue()


def trees(data: bytes) -> None:
    """Read what a file of trees says of itself."""
    with tempfile.NamedTemporaryFile(dir=_MEMORY) as file:
        path = Path(file.name)
        path.write_bytes(data)
        kind = contents.apparent_type(path)
        for model_type in {kind, "xgboost", "treelite_checkpoint"}:
            classes = contents.named_classes(path, model_type)
            try:
                contents.check_classes(path, classes)
            except ValueError as error:
                assert "num_class" in str(error)


def _tree_seeds() -> Iterator[bytes]:
    yield b'{"learner":{"learner_model_param":{"num_class":"3"}}}'
    yield b"{L\0\0\0\0\0\0\0\x07learner{L\0\0\0\0\0\0\0\x09num_classSL\0\0\0\0\0\0\0\x013}}"
    yield b"binf" + struct.pack("<fIi", 0.5, 4, 3)
    yield b"tree\nversion=v4\nnum_class=3\n"


def weights(data: bytes) -> None:
    """Read the header of a file of weights."""
    with tempfile.NamedTemporaryFile(dir=_MEMORY) as file:
        path = Path(file.name)
        path.write_bytes(data)
        try:
            shapes = safetensors.shapes(path)
        except ValueError as error:
            assert str(error).startswith("it")
        else:
            assert all(type(length) is int for shape in shapes.values() for length in shape)


def _weight_seeds() -> Iterator[bytes]:
    header = b'{"__metadata__":{},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
    yield struct.pack("<Q", len(header)) + header + bytes(8)
    yield struct.pack("<Q", 2) + b"{}"


def strings(data: bytes) -> None:
    """Split the strings of a tensor, or of the file of an initial state."""
    try:
        elements = split_strings(data)
    except StringsError:
        assert string_count(data) == -1
    else:
        assert join_strings(elements) == data
        assert string_count(data) == len(elements)


def _string_seeds() -> Iterator[bytes]:
    yield join_strings([b"a", b"", b"bc"])


def labels(data: bytes) -> None:
    """Split a file of labels."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return
    lines = label_lines(text)
    assert not any("\n" in line for line in lines)
    assert label_lines("\n".join(lines) + "\n" * bool(lines)) == [line.removesuffix("\r") for line in lines]


def _label_seeds() -> Iterator[bytes]:
    yield b"cat\r\ndog\nbird\xe2\x80\xa8x\n\n"


TARGETS = [
    Target("tar-members", members, _member_seeds),
    Target("zip-names", names, _name_seeds),
    Target("archives", archive, _archive_seeds),
    Target("trees", trees, _tree_seeds),
    Target("safetensors", weights, _weight_seeds),
    Target("strings", strings, _string_seeds),
    Target("labels", labels, _label_seeds),
]
