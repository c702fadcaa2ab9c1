"""Traffic by replicas: where two revisions share no server, requests are split as replicas are.

One replica of four is 25 % of the traffic, whatever a step asks for: each step gets the nearest number of replicas.
"""

from collections.abc import Iterable

from argosy.api.values.quantity import THOUSANDTHS, format_percent
from argosy.planning.amounts import quantity


def candidate_replicas(traffic: int, replicas: int) -> int:
    """Return how many of `replicas` have the candidate at a step with `traffic`, in thousandths.

    It is the nearest number, of two equally near the lower one: at least 1 where the step has traffic, and all of them
    only for all of it, unless there is one replica.
    """
    if replicas <= 0 or traffic <= 0:
        return 0
    if traffic >= THOUSANDTHS:
        return replicas
    nearest = (2 * traffic * replicas + THOUSANDTHS - 1) // (2 * THOUSANDTHS)
    return max(1, min(nearest, replicas - 1))


def actual_traffic(traffic: int, replicas: int) -> int:
    """Return the traffic of a step's nearest number of replicas, in thousandths, rounded to the nearest."""
    count = candidate_replicas(traffic, replicas)
    return (2 * count * THOUSANDTHS + replicas) // (2 * replicas) if replicas else 0


def shares_in_words(steps: Iterable[int], replicas: int) -> str:
    """Return what the steps' traffic becomes, such as `steps of 5%, 50% have 25%, 50% (1, 2 of 4 replicas)`.

    Empty without steps. `steps` are in thousandths.
    """
    requested = tuple(steps)
    if not requested or replicas <= 0:
        return ""
    got = ", ".join(format_percent(actual_traffic(step, replicas)) for step in requested)
    counts = ", ".join(str(candidate_replicas(step, replicas)) for step in requested)
    has = "a step of" if len(requested) == 1 else "steps of"
    gets = "has" if len(requested) == 1 else "have"
    desired = ", ".join(map(format_percent, requested))
    return f"{has} {desired} {gets} {got} ({counts} of {quantity(replicas, 'replica')})"
