"""Repository agents: what `model_repository_agents` of a configuration has done to a model's files before a load.

Triton loads agents as shared libraries from `--repoagent-directory`. Here its checksum agent is built in, and every
other one is refused: its code would run in the server's process.
"""

import hashlib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.errors import invalid, unsupported
from argosy_runtime.repository.folders.layout import ModelFolder, inside

_Agent = Callable[[Path, Mapping[str, str]], None]


def has_agents(config: ModelConfig) -> bool:
    """Return whether a configuration names an agent."""
    return bool(config.model_repository_agents.agents)


def run_agents(folder: ModelFolder, config: ModelConfig) -> None:
    """Run the agents of a configuration on a model's folder, in order.

    Blocks on the disk. Raises ServingError where one refuses the model, or is none of this server's.
    """
    for agent in config.model_repository_agents.agents:
        run = _AGENTS.get(agent.name)
        if run is None:
            raise unsupported(
                f"repository agent '{agent.name}' of model '{config.name or folder.name}' is not one of this server's, "
                f"which are: {', '.join(_AGENTS)}. What it does to the files must be done before they are in the "
                "repository, or by the model itself when it is initialized"
            )
        run(folder.path, agent.parameters)


def check_sums(folder: Path, sums: Mapping[str, str]) -> None:
    """Check files by their MD5: `sums` maps "MD5:<path in the model's folder>" to the sum in hexadecimal digits.

    Raises ServingError in the words of Triton's checksum agent.
    """
    for key in sorted(sums):
        algorithm, colon, relative = key.partition(":")
        if not colon:
            raise invalid(f"failed to parse key: {key}")
        if algorithm.lower() != "md5":
            raise unsupported(f"Unsupported checksum algorithm: {algorithm}")
        actual = _md5(folder, relative)
        if actual != sums[key]:
            raise invalid(f"Mismatched MD5 hash for file {relative}, expect: {sums[key]}, got: {actual}")


def _md5(folder: Path, relative: str) -> str:
    path = inside(folder, relative)
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, partial(hashlib.md5, usedforsecurity=False)).hexdigest()
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise invalid(f"failed to open text file for read {relative}: {why}") from error


_AGENTS: Final[Mapping[str, _Agent]] = {"checksum": check_sums}
