"""A fleet as the rules see it: plain values that know nothing of the operator, so that its plans can be checked."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property

FULL = 1000
"""The thousandths of a GPU's compute, and of its memory."""


@dataclass(frozen=True)
class Machine:
    """A node: its GPUs are alike, and `domains` are the ones that NVLink joins."""

    name: str
    gpus: int
    mib: int
    product: str
    domains: tuple[tuple[int, ...], ...] = ()


@dataclass(frozen=True)
class Pool:
    """A pool, which takes nodes of one product alone, or of any where `product` is empty."""

    name: str
    product: str = ""


@dataclass(frozen=True)
class Model:
    """A model: `mib` and thousandths of `compute` of one GPU, or so many whole `gpus`. Without `mib`: on the CPU."""

    name: str
    mib: int
    compute: int = 0
    gpus: int = 0
    replicas: int = 1
    pool: str = "fleet"

    @property
    def on_cpu(self) -> bool:
        """Whether it needs no GPU."""
        return not self.mib


@dataclass(frozen=True)
class Ensemble:
    """An ensemble, whose models share a server."""

    name: str
    steps: tuple[str, ...]
    replicas: int = 1
    pool: str = "fleet"


@dataclass(frozen=True)
class Group:
    """Models that share a server. Each of the `replicas` is on another server."""

    name: str
    pool: str
    models: tuple[Model, ...]
    replicas: int

    @property
    def shared(self) -> tuple[Model, ...]:
        """The models that take a part of a GPU."""
        return tuple(model for model in self.models if model.mib and not model.gpus)


@dataclass(frozen=True)
class Fleet:
    """A fleet, each group of which has a model on a GPU. `headroom`: thousandths of GPUs' memory that stay free."""

    name: str
    machines: tuple[Machine, ...]
    models: tuple[Model, ...]
    ensembles: tuple[Ensemble, ...] = ()
    pools: tuple[Pool, ...] = field(default=(Pool("fleet"),))
    headroom: int = 100

    def usable(self, machine: Machine) -> int:
        """Return the MiB of each of its GPUs that models may take."""
        return machine.mib * (FULL - self.headroom) // FULL

    @property
    def gpus(self) -> int:
        """The GPUs of all machines."""
        return sum(machine.gpus for machine in self.machines)

    def machines_of(self, pool: str) -> list[Machine]:
        """Return the machines that a pool may use."""
        product = self.product_of[pool]
        return [machine for machine in self.machines if product in ("", machine.product)]

    @cached_property
    def product_of(self) -> dict[str, str]:
        """The product that each pool selects."""
        return {pool.name: pool.product for pool in self.pools}

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """The groups, by name: an ensemble's models, with those of ensembles that share a model with it."""
        by_name = {model.name: model for model in self.models}
        first: dict[str, str] = {}
        groups = []
        for names, ensembles in _connected(self.ensembles):
            members = tuple(by_name[name] for name in names)
            replicas = max([*(model.replicas for model in members), *(one.replicas for one in ensembles)])
            groups.append(Group(min(one.name for one in ensembles), members[0].pool, members, replicas))
            first |= dict.fromkeys(names, groups[-1].name)
        alone = (model for model in self.models if model.name not in first)
        groups += [Group(model.name, model.pool, (model,), model.replicas) for model in alone]
        return tuple(sorted(groups, key=lambda group: group.name))

    @property
    def replicas(self) -> int:
        """The replicas of all groups."""
        return sum(group.replicas for group in self.groups)


def _connected(ensembles: Iterable[Ensemble]) -> Iterator[tuple[tuple[str, ...], tuple[Ensemble, ...]]]:
    """Yield the models that ensembles connect, with these ensembles."""
    parts: list[tuple[dict[str, None], list[Ensemble]]] = []
    for ensemble in ensembles:
        steps = dict.fromkeys(ensemble.steps)
        joined = [part for part in parts if part[0].keys() & steps.keys()]
        parts = [part for part in parts if part not in joined]
        names = {name: None for part in (*(names for names, _ in joined), steps) for name in part}
        parts.append((names, [*(one for _, ones in joined for one in ones), ensemble]))
    for names, ones in parts:
        yield tuple(names), tuple(ones)
