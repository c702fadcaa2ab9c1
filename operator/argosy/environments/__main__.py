"""`python -m argosy.environments ENGINE --into FOLDER`: what `argosy engines install` does, for builds of images."""

import argparse
import sys
from pathlib import Path

from .errors import EnvironmentFailedError
from .installing import Request, install
from .recipes import ENGINES, Device, recipe


def main() -> None:
    """Install the engine that the arguments name, with the interpreter that runs this."""
    parser = argparse.ArgumentParser(prog="python -m argosy.environments", description="Install an engine's packages.")
    parser.add_argument("engine", choices=ENGINES)
    parser.add_argument("--device", type=Device, choices=list(Device), required=True)
    parser.add_argument("--into", type=Path, required=True, metavar="FOLDER")
    arguments = parser.parse_args()
    try:
        chosen = recipe(arguments.engine, arguments.device, lambda: False)
        install(Request(chosen, arguments.into, sys.executable), print)
    except EnvironmentFailedError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
