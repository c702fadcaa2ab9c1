"""A fleet of every kind of model at once, as large as is asked for: what the planner's speed is measured with."""

import random
from collections.abc import Callable

from benchmarks.packing.fleets.families import GIB, H100, L4, L40S, Random, machines
from benchmarks.packing.fleets.fleet import FULL, Ensemble, Fleet, Model, Pool

KINDS = {"pool-h": H100, "pool-m": L40S, "pool-s": L4}
"""The pools, each with GPUs of one product."""
_WEIGHTS = {"small": 48, "tail": 14, "apart": 14, "steps": 14, "whole": 10}
"""Of a hundred models drawn."""


def every_kind(models: int, seed: int) -> Fleet:
    """Return a fleet of about so many models, with a quarter more GPUs than their volume takes."""
    rng = random.Random(f"every kind {seed}")
    every: list[Model] = []
    groups: list[Ensemble] = []
    while len(every) < models:
        kind = rng.choices(tuple(_WEIGHTS), tuple(_WEIGHTS.values()))[0]
        pool = rng.choices(tuple(KINDS), (60, 25, 15))[0]
        added = _DRAWS[kind](rng, f"{kind}-{len(every):05}", "pool-h" if kind == "whole" else pool)
        every += added
        if kind == "steps":
            groups.append(Ensemble(f"e-{len(groups):05}", tuple(model.name for model in added), pool=added[0].pool))
    nodes = [
        machine for pool, kind in KINDS.items() for machine in machines(pool, kind, 8, _volume(every, pool), spare=1)
    ]
    pools = tuple(Pool(pool, kind[0]) for pool, kind in KINDS.items())
    return Fleet(f"every-kind-{seed}", tuple(nodes), tuple(every), tuple(groups), pools)


def _volume(models: list[Model], pool: str) -> float:
    mine = [model for model in models if model.pool == pool]
    shared = [model for model in mine if not model.gpus]
    memory = sum(model.mib * model.replicas for model in shared) / (KINDS[pool][1] * 0.9)
    compute = sum(model.compute * model.replicas for model in shared) / FULL
    return sum(model.gpus for model in mine) + max(memory, compute)


def _small(rng: Random, name: str, pool: str) -> list[Model]:
    return [Model(name, _mib(rng, pool, 0.6), _compute(rng, 8), pool=pool)]


def _tail(rng: Random, name: str, pool: str) -> list[Model]:
    mib = int(min(GIB * rng.paretovariate(0.8), KINDS[pool][1] * 0.85))
    return [Model(name, mib, _compute(rng, 6), pool=pool)]


def _apart(rng: Random, name: str, pool: str) -> list[Model]:
    return [Model(name, _mib(rng, pool, 0.6), _compute(rng, 8), replicas=rng.choice((2, 2, 3)), pool=pool)]


def _steps(rng: Random, name: str, pool: str) -> list[Model]:
    names = [f"{name}-{at}" for at in range(rng.randint(2, 4))]
    return [Model(step, _mib(rng, pool, 0.35), _compute(rng, 6), pool=pool) for step in names]


def _exclusive(rng: Random, name: str, pool: str) -> list[Model]:
    return [Model(name, 70 * GIB, gpus=rng.choice((2, 2, 4, 8)), pool=pool)]


_DRAWS: dict[str, Callable[[Random, str, str], list[Model]]] = {
    "small": _small,
    "tail": _tail,
    "apart": _apart,
    "steps": _steps,
    "whole": _exclusive,
}


def _mib(rng: Random, pool: str, share: float) -> int:
    """Return a size of up to this share of the pool's GPUs, in steps of a quarter of a GiB."""
    return GIB // 4 * rng.randint(2, int(KINDS[pool][1] * share * 4 / GIB))


def _compute(rng: Random, most: int) -> int:
    return 50 * rng.randint(1, most)
