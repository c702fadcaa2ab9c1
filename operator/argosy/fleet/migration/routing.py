"""Which models and ensembles may be reached on a server."""

from collections.abc import Collection, Iterable

from argosy.fleet.migration.observed import Observed


def routes(server: str, names: Iterable[str], unrouted: Collection[str], observed: Observed) -> frozenset[str]:
    """Of what the server is to hold (`names`) that which answers there, but for what is on its way out."""
    return frozenset(name for name in names if name not in unrouted and observed.serves(server, name))
