"""Reading `engine.options` of a request, by the same tables that the operator checks manifests with. Pure.

A request that is written by hand, or by an operator of another release, was not checked before.
"""

from typing import Any

from argosy_agent.contract.builds import BuildFailure, BuildRequest
from argosy_agent.contract.engine_options.checks import TABLES, option_faults, parallelism_faults, table_of
from argosy_agent.contract.engine_options.requested import DeclaredSizes

from .contract import BuildError


def read_options(request: BuildRequest) -> dict[str, Any]:
    """Return every option of the builder's table with its value or its default, None where only words describe that.

    Raises BuildError for the first error of the options or the precision: CALIBRATION_MISSING, else INVALID_OPTIONS.
    """
    calibrated = bool(request.calibration.uri)
    sizes = DeclaredSizes(request.tensor, request.pipeline, request.max_batch_size)
    for fault in (
        *option_faults(request.builder, request.precision, request.options, calibrated),
        *parallelism_faults(request.builder, request.options, sizes),
    ):
        missing = fault.path == ("calibration",) and not calibrated
        failure = BuildFailure.CALIBRATION_MISSING if missing else BuildFailure.INVALID_OPTIONS
        raise BuildError(failure, f"{_dotted(fault.path)}: {fault.message}")
    table = TABLES[table_of(request.builder, request.options)]
    return {name: request.options.get(name, option.default_value) for name, option in table.items()}


def invalid(name: str, message: str) -> BuildError:
    """Return the error of one option."""
    return BuildError(BuildFailure.INVALID_OPTIONS, f"spec.engine.options.{name}: {message}")


def _dotted(path: tuple[str | int, ...]) -> str:
    """Return the path of a field as users write it, such as `spec.engine.options.profiles[0].x`."""
    return "spec.engine" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
