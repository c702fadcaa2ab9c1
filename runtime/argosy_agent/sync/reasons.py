"""Load failures in terms of the manifest instead of the server's own folders."""

import re
from collections.abc import Mapping
from pathlib import Path

from argosy_agent.transfer.errors import shown

WAY_OUT = "mend its files or the manifest and it is loaded again by itself"
NAMES_SHOWN = 8
ANSWER = re.compile(r"^load failed for model '[^']*': version \d+ is at UNAVAILABLE state: ")
"""What Triton's protocol puts before the reason."""


def load_failure(words: str, folder: Path, uris: Mapping[int, str], log: str) -> str:
    """Return a server's error for the model in `folder` as one line that names its storageUri where a file is missing.

    `uris` are its versions' storageUris; `log` is where the server logs more, empty where that is not known.
    """
    words = re.sub(ANSWER, "", words)
    missing = [path for path in re.findall(rf"{re.escape(str(folder))}/\d+/[^\s'\":(]+", words) if _is_not(path)]
    for version in uris:
        words = words.replace(f"{folder}/{version}/", "")
    line = " ".join(words.split()).rstrip(";. ")
    for path in dict.fromkeys(missing):
        version = int(Path(path).relative_to(folder).parts[0])
        line += f"; {shown(uris.get(version, str(folder)))} holds {_listing(folder / str(version))}"
    return f"{line}; {WAY_OUT} (the server's log{f': {log}' if log else ' may say more'})"


def _is_not(path: str) -> bool:
    return not Path(path).exists()


def _listing(folder: Path) -> str:
    names = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    return (", ".join(names[:NAMES_SHOWN]) or "nothing") + more
