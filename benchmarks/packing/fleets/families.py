"""The families of fleets, each of 30 to 60 models, drawn by a seed.

The seeds are split: rules and constants of the planner may be chosen on the half `tune`; the half `judge` only judges.
"""

import random
from collections.abc import Callable, Mapping, Sequence

from benchmarks.packing.fleets.fleet import FULL, Ensemble, Fleet, Machine, Model, Pool

TUNE, JUDGE = "tune", "judge"
FIRST_SEEDS = {TUNE: 1000, JUDGE: 5000}
MOST_SEEDS = 1000
GIB = 1024
"""In MiB, in which sizes are given here."""
H100, L40S, L4 = ("NVIDIA-H100-80GB-HBM3", 81559), ("NVIDIA-L40S", 46068), ("NVIDIA-L4", 23034)
"""Products with the MiB that GPU feature discovery reports."""
_SPARE = 1.25
"""GPUs over what the volume takes: enough that nearly every fleet has a place for all, and little beyond it."""
Random = random.Random


def fleet_of(family: str, seed: int) -> Fleet:
    """Return the fleet of a seed."""
    return FAMILIES[family](Random(f"{family} {seed}"), f"{family}-{seed}")


def one_size(rng: Random, name: str) -> Fleet:
    """Return small models on GPUs of one size."""
    models = [Model(f"m-{at:02}", _mib(rng, 2, 30), _compute(rng, 400)) for at in range(rng.randint(30, 60))]
    return Fleet(name, machines("a", H100, 4, _volume(models, H100), spare=1), tuple(models))


def three_types(rng: Random, name: str) -> Fleet:
    """Return three types of GPUs: a pool for each of them, and one that takes any. Their order says nothing."""
    *bound, free = rng.sample(("pool-a", "pool-b", "pool-c", "pool-d"), 4)
    kinds = dict(zip(bound, (H100, L40S, L4), strict=True))
    models = []
    for at in range(rng.randint(30, 60)):
        pool = rng.choice((*bound, free))
        most = kinds.get(pool, L4)[1] * 0.7 / GIB
        models.append(Model(f"m-{at:02}", _mib(rng, 1, most), _compute(rng, 500), pool=pool))
    need = {pool: _volume([model for model in models if model.pool == pool], kind) for pool, kind in kinds.items()}
    need[rng.choice(bound)] += _volume([model for model in models if model.pool == free], L40S)
    nodes = [
        machine
        for at, (pool, kind) in enumerate(kinds.items())
        for machine in machines("abc"[at], kind, 2, need[pool], spare=1)
    ]
    pools = (*(Pool(pool, kind[0]) for pool, kind in kinds.items()), Pool(free))
    return Fleet(name, tuple(nodes), tuple(models), pools=tuple(sorted(pools, key=lambda pool: pool.name)))


def ensembles(rng: Random, name: str) -> Fleet:
    """Return ensembles of two to five steps, some with two replicas, some with a step on the CPU; and single models."""
    models: list[Model] = []
    groups = []
    for at in range(rng.randint(6, 9)):
        steps = [Model(f"e-{at:02}-{step}", _mib(rng, 2, 38), _compute(rng, 300)) for step in range(rng.randint(2, 4))]
        steps += [Model(f"e-{at:02}-text", 0)] if rng.random() < 0.5 else []
        groups.append(Ensemble(f"e-{at:02}", tuple(step.name for step in steps), rng.choice((1, 1, 2))))
        models += steps
    while len(models) < 30 or (rng.random() < 0.8 and len(models) < 60):
        models.append(Model(f"m-{len(models):02}", _mib(rng, 2, 24), _compute(rng, 300)))
    replicas = {step: group.replicas for group in groups for step in group.steps}
    volume = _volume([model for model in models for _ in range(replicas.get(model.name, 1))], H100)
    return Fleet(name, machines("a", H100, rng.choice((2, 4)), volume, spare=2), tuple(models), tuple(groups))


def exclusive_gpus(rng: Random, name: str) -> Fleet:
    """Return models that take 2, 4 or 8 whole GPUs of one NVLink domain, and small ones on what is left."""
    models = [Model(f"w-{at:02}", 70 * GIB, gpus=rng.choice((2, 2, 2, 4, 4, 8))) for at in range(rng.randint(8, 14))]
    while len(models) < 30 or (rng.random() < 0.9 and len(models) < 60):
        models.append(Model(f"m-{len(models):02}", _mib(rng, 4, 40), _compute(rng, 400)))
    exclusive = sum(model.gpus for model in models)
    shared = _volume([model for model in models if not model.gpus], H100)
    return Fleet(name, machines("a", H100, 8, exclusive + shared, spare=2), tuple(models))


def heavy_tail(rng: Random, name: str) -> Fleet:
    """Return sizes with a heavy tail: most are small, a few take nearly a GPU."""
    largest = 0.88 * H100[1]
    sizes = [int(min(2 * GIB * rng.paretovariate(0.75), largest * rng.uniform(0.6, 1))) for _ in range(60)]
    models = [Model(f"m-{at:02}", size, _compute(rng, 350)) for at, size in enumerate(sizes[: rng.randint(30, 60)])]
    return Fleet(name, machines("a", H100, 4, _volume(models, H100), spare=2), tuple(models))


def apart(rng: Random, name: str) -> Fleet:
    """Return models of one to five replicas, no two of which share a server."""
    models = [
        Model(f"m-{at:02}", _mib(rng, 4, 44), _compute(rng, 350), replicas=rng.choice((1, 1, 2, 2, 3, 5)))
        for at in range(rng.randint(30, 40))
    ]
    volume = _volume([model for model in models for _ in range(model.replicas)], H100)
    return Fleet(name, machines("a", H100, rng.choice((2, 4)), volume, spare=2), tuple(models))


FAMILIES: Mapping[str, Callable[[Random, str], Fleet]] = {
    "one-size": one_size,
    "three-types": three_types,
    "ensembles": ensembles,
    "whole-gpus": exclusive_gpus,
    "heavy-tail": heavy_tail,
    "apart": apart,
}


def machines(prefix: str, kind: tuple[str, int], per_node: int, gpus: float, spare: int) -> tuple[Machine, ...]:
    """Return nodes with so many GPUs and a quarter more, and `spare` nodes besides. NVLink joins H100s."""
    product, mib = kind
    domains = (tuple(range(per_node)),) if kind is H100 and per_node > 1 else ()
    count = -int(-(gpus * _SPARE) // per_node) + spare
    return tuple(Machine(f"{prefix}-{at:03}", per_node, mib, product, domains) for at in range(count))


def _volume(models: Sequence[Model], kind: tuple[str, int]) -> float:
    """Return the GPUs that the models fill by volume, by the scarcer of memory and compute."""
    usable = kind[1] * 0.9
    return max(sum(model.mib for model in models) / usable, sum(model.compute for model in models) / FULL)


def _mib(rng: Random, least: float, most: float) -> int:
    """Return a size in steps of half a GiB."""
    return GIB // 2 * rng.randint(int(2 * least), int(2 * most))


def _compute(rng: Random, most: int) -> int:
    """Return a share of a GPU in steps of 5 %."""
    return 50 * rng.randint(1, most // 50)
