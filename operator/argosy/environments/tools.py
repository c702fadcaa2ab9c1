"""The commands of uv and pip that create an environment and change its packages; both follow pip's settings."""

import importlib.util
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from argosy_common import pip_settings

from .errors import EnvironmentFailedError


@dataclass(frozen=True, slots=True)
class Tool:
    """The tool that is used, with its name for messages, and the parts of its commands.

    `settings` come after `install` and `remove` of every command.
    """

    name: str
    create: tuple[str, ...]
    install: tuple[str, ...]
    remove: tuple[str, ...]
    settings: tuple[str, ...]

    def creating(self, folder: Path) -> list[str]:
        """Return the command that creates an empty environment in a folder."""
        return [*self.create, str(folder)]

    def installing(self, folder: Path, requirements: Sequence[str]) -> list[str]:
        """Return the command that installs packages into an environment."""
        return [*self._placed(self.install, folder), *self.settings, *requirements]

    def removing(self, folder: Path, packages: Sequence[str]) -> list[str]:
        """Return the command that removes packages from an environment."""
        return [*self._placed(self.remove, folder), *packages]

    def _placed(self, command: Sequence[str], folder: Path) -> list[str]:
        return [str(folder / "bin/python") if word == _PYTHON else word for word in command]


_PYTHON = "{environment's python}"


def uv_tool(uv: str, python: str, config: Path | None, settings: Sequence[str]) -> Tool:
    """Return uv, with a configuration file if pip has settings."""
    begin = (uv, *(("--config-file", str(config)) if config else ()))
    return Tool(
        name="uv",
        create=(*begin, "venv", "--quiet", "--python", python),
        install=(*begin, "pip", "install", "--python", _PYTHON),
        remove=(*begin, "pip", "uninstall", "--quiet", "--python", _PYTHON),
        settings=tuple(settings),
    )


def pip_tool(python: str, settings: Sequence[str]) -> Tool:
    """Return the pip of the environment, which reads its settings itself."""
    return Tool(
        name="pip",
        create=(python, "-m", "venv"),
        install=(_PYTHON, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--progress-bar=off"),
        remove=(_PYTHON, "-m", "pip", "uninstall", "--quiet", "--yes"),
        settings=tuple(settings),
    )


def find_tool(python: str, extra_indexes: Sequence[str], scratch: Path) -> Tool:
    """Return uv where there is one, else pip. `scratch`: a folder that exists as long as the tool is used.

    Raises EnvironmentFailedError where pip's settings cannot be read.
    """
    more = [word for index in extra_indexes for word in ("--extra-index-url", index)]
    uv = _uv()
    if uv is None:
        return pip_tool(python, more)
    settings = _settings_of_pip()
    if settings is None:
        return uv_tool(uv, python, None, more)
    config = scratch / "uv.toml"
    config.write_text(settings.uv)
    constraints = [word for file in settings.constraints for word in ("--constraints", str(file))]
    return uv_tool(uv, python, config, [*constraints, *more])


def _uv() -> str | None:
    # In an environment that is not activated it is in no folder of PATH.
    sibling = Path(sys.executable).with_name("uv")
    return str(sibling) if sibling.is_file() else shutil.which("uv")


def _settings_of_pip() -> pip_settings.PipSettings | None:
    """Return pip's settings; None where no pip is installed here, or where they name no place of packages."""
    if importlib.util.find_spec("pip") is None:
        return None
    try:
        settings = pip_settings.of_machine()
    except subprocess.CalledProcessError as error:
        raise EnvironmentFailedError(f"pip's settings cannot be read: {error.stderr.strip()}") from error
    return settings if settings.has_sources or settings.constraints else None
