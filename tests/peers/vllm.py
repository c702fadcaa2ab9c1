"""vLLM for the CPU, in an engine environment that `argosy engines install` makes."""

import os
import sys
from pathlib import Path

from tests.peers.cache import PeerUnavailableError, cache_root

from argosy.environments.errors import EnvironmentFailedError
from argosy.environments.installing import Request
from argosy.environments.installing import install as install_environment
from argosy.environments.recipes import Device, recipe


def engines() -> Path:
    """Return the folder of engine environments, as ARGOSY_ENGINES names it."""
    return cache_root() / "engines"


def install() -> Path:
    """Return the environment's folder; it is made where it is not there yet. Raises PeerUnavailableError.

    One that ARGOSY_ENGINES names is used as it is.
    """
    for named in filter(None, os.environ.get("ARGOSY_ENGINES", "").split(os.pathsep)):
        if (Path(named) / "vllm/bin/python").exists():
            return Path(named) / "vllm"
    request = Request(recipe("vllm", Device.CPU, lambda: False), engines(), sys.executable)
    try:
        folder, _ = install_environment(request, lambda line: None)
    except EnvironmentFailedError as error:
        raise PeerUnavailableError(str(error)) from error
    return folder
