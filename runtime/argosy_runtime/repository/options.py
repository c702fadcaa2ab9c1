"""What the server's flags say about its repositories."""

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from .backend_settings import BackendSetting


class ControlMode(StrEnum):
    """Who decides which models are loaded: the folder at start, the folder at any time, or the clients."""

    NONE = "none"
    POLL = "poll"
    EXPLICIT = "explicit"


@dataclass(frozen=True, slots=True)
class RepositoryOptions:
    """Paths and policies. Times in seconds. `overrides`: whether a client's load may bring a configuration or files."""

    paths: tuple[Path, ...]
    control_mode: ControlMode = ControlMode.NONE
    startup_models: tuple[str, ...] = ()
    poll_seconds: float = 15.0
    autocomplete: bool = True
    config_name: str = ""
    load_timeout: float = 600.0
    unload_grace: float = 30.0
    parallel_loads: int = 4
    backend_settings: tuple[BackendSetting, ...] = ()
    overrides: bool = True
