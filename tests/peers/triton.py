"""NVIDIA Triton Inference Server 2.51: the real binary, with its Python backend, as the oracle.

It comes in the wheel of nvidia-pytriton, which also brings the libraries it was linked with and one Python
stub per Python version. It serves Python models and ensembles of them, and has no other backend.

The stub takes the `python3` it finds on PATH for its environment, and reads arrays as NumPy 1 laid them out:
under NumPy 2 every output is empty. So it gets a virtual environment of its own, with NumPy 1.
"""

import os
import shutil
import sys
import sysconfig
from pathlib import Path

from tests.peers.cache import PeerUnavailableError, installed, run, unpack_wheel
from tests.peers.server import Ports, Server, start

RELEASE = "0.7.0"
"""nvidia-pytriton's release that carries tritonserver 2.51."""
NUMPY = "1.26.4"


def install() -> Path:
    """Return the folder of the unpacked wheel, with a backend folder that fits the running Python.

    Raises PeerUnavailableError with the reason when it is unavailable here.
    """
    python = f"{sys.version_info.major}.{sys.version_info.minor}"
    return installed(f"tritonserver-{RELEASE}-py{python}", lambda folder: _build(folder, python))


def _build(folder: Path, python: str) -> None:
    unpack_wheel(f"nvidia-pytriton=={RELEASE}", folder)
    server = folder / "pytriton" / "tritonserver"
    stubs = server / "python_backend_stubs" / python
    if not stubs.is_dir():
        have = ", ".join(sorted(path.name for path in stubs.parent.iterdir()))
        raise PeerUnavailableError(f"tritonserver's Python stub is for Python {have}, and this is {python}")
    shutil.copytree(stubs, server / "backends" / "python", dirs_exist_ok=True)
    for program in (server / "bin" / "tritonserver", server / "backends/python/triton_python_backend_stub"):
        program.chmod(0o755)
    run(
        [sys.executable, "-m", "venv", "--without-pip", str(folder / "python")],
        "making the stub's environment",
    )
    unpack_wheel(f"numpy=={NUMPY}", folder / "python" / "lib" / f"python{python}" / "site-packages")


def environment(folder: Path) -> dict[str, str]:
    """Return what the server's process needs in its environment: its libraries and the running Python's."""
    libraries = [folder / "nvidia_pytriton.libs", Path(str(sysconfig.get_config_var("LIBDIR")))]
    return {
        "LD_LIBRARY_PATH": ":".join(map(str, libraries)),
        "PATH": f"{folder / 'python' / 'bin'}:{os.environ.get('PATH', os.defpath)}",
        "PYTHONDONTWRITEBYTECODE": "1",
    }


def triton(repository: Path, *flags: str, log: Path, wait_for: str = "/v2/health/ready") -> Server:
    """Start tritonserver on `repository` with more `flags`; it answers `wait_for` when this returns."""
    folder = install()
    home = folder / "pytriton" / "tritonserver"

    def command(ports: Ports) -> list[str]:
        return [
            str(home / "bin" / "tritonserver"),
            f"--model-repository={repository}",
            f"--backend-directory={home / 'backends'}",
            f"--cache-directory={home / 'caches'}",
            "--http-address=127.0.0.1",
            "--grpc-address=127.0.0.1",
            "--metrics-address=127.0.0.1",
            f"--http-port={ports.http}",
            f"--grpc-port={ports.grpc}",
            f"--metrics-port={ports.metrics}",
            "--exit-timeout-secs=5",
            *flags,
        ]

    return start("triton", command, log, environment(folder), wait_for)
