"""The image of the process that holds a pod's namespaces: one static program that waits for ever.

Made here byte by byte, because the usual one comes from a registry that a machine may not reach, and a compiler is
more than a machine may have.
"""

import hashlib
import io
import json
import struct
import tarfile
from pathlib import Path

NAME = "localhost/argosy-pause:1"
_BASE = 0x400000
_HEADERS = 64 + 56
# mov eax, 34 (pause); syscall; jmp back. No signal handlers: containerd ends a sandbox with SIGKILL.
_CODE = bytes.fromhex("b8220000000f05ebf7")


def program() -> bytes:
    """Return an x86-64 ELF executable of one segment."""
    size = _HEADERS + len(_CODE)
    entry = _BASE + _HEADERS
    header = b"\x7fELF\x02\x01\x01" + bytes(9)
    header += struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, entry, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    segment = struct.pack("<IIQQQQQQ", 1, 5, 0, _BASE, _BASE, size, size, 0x1000)
    return header + segment + _CODE


def archive() -> bytes:
    """Return the image as a docker archive, the same bytes every time."""
    layer = _tar({"pause": (program(), 0o755)})
    digest = hashlib.sha256(layer).hexdigest()
    config = json.dumps({
        "architecture": "amd64", "os": "linux", "config": {"Entrypoint": ["/pause"], "User": "65535:65535"},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{digest}"]},
    }).encode()  # fmt: skip
    config_name = f"{hashlib.sha256(config).hexdigest()}.json"
    manifest = json.dumps([{"Config": config_name, "RepoTags": [NAME], "Layers": ["layer.tar"]}]).encode()
    return _tar({"layer.tar": (layer, 0o644), config_name: (config, 0o644), "manifest.json": (manifest, 0o644)})


def write(path: Path) -> Path:
    """Write the archive to `path`."""
    path.write_bytes(archive())
    return path


def _tar(files: dict[str, tuple[bytes, int]]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for name, (content, mode) in files.items():
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(content), mode
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()
