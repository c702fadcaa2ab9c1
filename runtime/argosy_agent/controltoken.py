"""A server's control token: a random secret in a file that the server and its agent read.

`python -m argosy_agent.controltoken FILE` makes one for a Pod, whose containers may have different users of one group.
"""

import os
import secrets
import sys
from pathlib import Path

BYTES = 32
OWNER, OWNER_AND_GROUP = 0o400, 0o440


def write_token(path: Path, mode: int) -> None:
    """Replace a file by one with a new token, with the permissions `mode` from the start. Raises OSError."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    temporary.unlink(missing_ok=True)
    with os.fdopen(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "w") as file:
        file.write(secrets.token_urlsafe(BYTES) + "\n")
    temporary.replace(path)


def authorization(path: Path) -> dict[str, str]:
    """Return the header that opens a server's control to the holder of its token. Raises OSError."""
    return {"authorization": f"Bearer {path.read_text().strip()}"}


if __name__ == "__main__":
    write_token(Path(sys.argv[1]), OWNER_AND_GROUP)
