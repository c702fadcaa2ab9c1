"""How replicas of a group are spread: topology keys, as Kubernetes has them, preferred or required."""

from collections.abc import Iterable
from dataclasses import dataclass

from argosy.api import Ensemble, InferenceModel
from argosy.api.model.placement import HOSTNAME as HOSTNAME
from argosy.api.model.placement import ZONE as ZONE
from argosy.api.model.placement import WhenUnsatisfiable


@dataclass(frozen=True, slots=True)
class Spread:
    """Replicas are apart by a node's label `key`: where there is space, or, if `required`, in any case. With fewer than
    `least` domains each has one replica.
    """

    key: str
    required: bool = False
    least: int = 1


DEFAULT_SPREAD = (Spread(HOSTNAME), Spread(ZONE))
"""Replicas prefer different nodes, then different zones."""


def spread_of(members: Iterable[InferenceModel | Ensemble]) -> tuple[Spread, ...]:
    """Return the spread of what shares a server: what any of them requires is required. Defaults hold for keys that
    none of them has.
    """
    by_key = {spread.key: spread for spread in DEFAULT_SPREAD}
    for member in members:
        for constraint in member.spec.topology_spread:
            required = constraint.when_unsatisfiable is WhenUnsatisfiable.DO_NOT_SCHEDULE
            one = by_key.get(constraint.topology_key, Spread(constraint.topology_key))
            least = max(one.least, constraint.min_domains or 1)
            by_key[one.key] = Spread(one.key, one.required or required, least)
    first = [spread.key for spread in DEFAULT_SPREAD]
    return tuple(by_key[key] for key in (*first, *sorted(by_key.keys() - set(first))))
