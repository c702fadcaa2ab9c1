"""How a case is written: the changes of a right body, the field that they break, and words of what is said."""

from typing import Any

Case = tuple[dict[str, Any], str, str]


def group(**fields: Any) -> dict[str, Any]:
    """Return one instance group in place of `instances`."""
    return {"instances": ..., "instanceGroups": [fields]}
