"""The package's surface, and that it can be imported by the operator: nothing else of the runtime comes with it."""

import subprocess
import sys

import argosy_runtime.modelconfig as package

EXPORTS = [
    "ConfigError",
    "EnsembleGraph",
    "EnsembleStep",
    "InstancePlacement",
    "Violation",
    "check",
    "check_placement",
    "check_steps",
    "check_structure",
    "config_type",
    "element_size",
    "instances",
    "is_decoupled",
    "normalize",
    "numpy_dtype",
    "parse_json",
    "parse_text",
    "to_json",
    "v2_name",
]


def test_exports() -> None:
    assert sorted(package.__all__) == EXPORTS
    assert all(hasattr(package, name) for name in EXPORTS)


def test_importing_it_brings_nothing_else_of_the_runtime_and_no_framework() -> None:
    script = (
        "import sys, argosy_runtime.modelconfig\n"
        "own = ('argosy_runtime.modelconfig', 'argosy_runtime.schemas')\n"
        "print([m for m in sys.modules if m.startswith('argosy_runtime.') and not m.startswith(own)]"
        " + [m for m in ('torch', 'onnxruntime') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
