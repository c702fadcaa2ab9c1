"""NVIDIA's tritonserver, started with the flags that `argosy up` gives its server."""

import os
import sys

from tests.peers.triton import environment, install

NOT_ITS_OWN = "--control-token-file="
"""The bundled server's alone."""


def main() -> None:
    """Become the server."""
    folder = install()
    home = folder / "pytriton" / "tritonserver"
    flags = [flag for flag in sys.argv[1:] if not flag.startswith(NOT_ITS_OWN)]
    own = [f"--backend-directory={home / 'backends'}", f"--cache-directory={home / 'caches'}"]
    program = str(home / "bin" / "tritonserver")
    os.execve(program, [program, *flags, *own], {**os.environ, **environment(folder)})


if __name__ == "__main__":
    main()
