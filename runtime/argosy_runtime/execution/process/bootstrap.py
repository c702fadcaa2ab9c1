"""The first code of a model's process that has an interpreter of its own: `python -P bootstrap.py FD [MEMORY]`.

It makes the server's code importable, and the packages that the environment lacks; then it runs the worker. Processes
that a model spawns by multiprocessing run this file, too. It imports nothing of ours before that.
"""

import json
import os
import sys
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder


class _Located(MetaPathFinder):
    """A finder of some packages, each in a folder of its own."""

    def __init__(self, folders: dict[str, str]) -> None:
        self._folders = folders

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> ModuleSpec | None:
        folder = self._folders.get(fullname)
        return None if folder is None else PathFinder.find_spec(fullname, [folder])


def _prepare() -> None:
    paths = json.loads(os.environ["ARGOSY_IMPORT_PATHS"])
    sys.meta_path.insert(0, _Located(paths["first"]))
    sys.meta_path.append(_Located(paths["lent"]))
    sys.path.extend(folder for folder in paths["last"] if folder not in sys.path)


if __name__ == "__main__":
    _prepare()
    from argosy_runtime.execution.process.worker import main

    main()
elif __name__ == "__mp_main__":
    _prepare()
    if "ARGOSY_MODEL_MODULE" in os.environ:
        from argosy_runtime.backends.python.loader import adopt

        adopt()
