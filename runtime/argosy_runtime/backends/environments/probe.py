"""Prints what an interpreter is, as JSON: `python -I probe.py PACKAGE...`. Any Python 3 can run it."""

import importlib.util
import json
import sys
import sysconfig


def _is_missing(name: str) -> bool:
    """Return whether a package cannot be found."""
    try:
        return importlib.util.find_spec(name) is None
    except ImportError:
        return True


if __name__ == "__main__":
    print(
        json.dumps(
            {
                "version": "%d.%d.%d" % sys.version_info[:3],  # noqa: UP031  (Pythons that the server cannot use run it, too)
                "abi": sysconfig.get_config_var("SOABI"),
                "packages": sysconfig.get_paths()["purelib"],
                "missing": [name for name in sys.argv[1:] if _is_missing(name)],
            }
        )
    )
