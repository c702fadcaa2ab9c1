"""Names of resources and objects across kinds and namespaces: readable texts with parts."""

from functools import lru_cache
from typing import Self

_MOST = 1 << 16
"""Names of each sort that are made once: a round of a large fleet asks for each of them many times."""


class PoolKey(str):
    """A ServingPool's `namespace/name`, by which members, servers and objects refer to it."""

    __slots__ = ()

    @classmethod
    @lru_cache(maxsize=_MOST)
    def of(cls, namespace: str, name: str) -> Self:
        """Return the key of a pool."""
        return cls(f"{namespace}/{name}")

    @property
    def namespace(self) -> str:
        """The pool's namespace."""
        return self.partition("/")[0]

    @property
    def name(self) -> str:
        """The pool's name."""
        return self.partition("/")[2]


class Identity(str):
    """A resource's or an object's `Kind namespace/name`, as in messages."""

    __slots__ = ()

    @classmethod
    @lru_cache(maxsize=_MOST)
    def of(cls, kind: str, namespace: str, name: str) -> Self:
        """Return the identity of an object."""
        return cls(f"{kind} {namespace}/{name}")

    @property
    def kind(self) -> str:
        """The object's kind."""
        return self.partition(" ")[0]

    @property
    def namespace(self) -> str:
        """The object's namespace."""
        return self.partition(" ")[2].partition("/")[0]

    @property
    def name(self) -> str:
        """The object's name."""
        return self.partition(" ")[2].partition("/")[2]


def in_pool(name: str, pool: str) -> str:
    """Return how messages name a model or an ensemble of another pool. `name`: empty where it is of another namespace,
    of which they name no resource but the pool.
    """
    return f"{name or 'a model'} of ServingPool {pool}"
