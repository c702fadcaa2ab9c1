"""Model versions as requests name them."""

from argosy_runtime.errors import invalid
from argosy_runtime.modelconfig.versions import number_of


def canonical(version: str) -> str:
    """Return a version without leading zeros; "" stays, and leaves the choice to the version policy.

    Raises INVALID_ARG where it is no 64-bit number, or a negative one.
    """
    if not version:
        return ""
    number = number_of(version)
    if number is None:
        raise invalid(
            f"failed to get model version from specified version string '{version}' (details: stol), version "
            "should be an integral value > 0"
        )
    if number < 0:
        raise invalid(f"invalid model version specified '{version}' , version should be an integral value > 0")
    return str(number)
