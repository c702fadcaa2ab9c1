"""One fleet, ours next to the optimum and to plain rules; and what all fleets say together."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from benchmarks.packing.baselines import RULES, baselines, one_a_gpu
from benchmarks.packing.fleets.families import fleet_of
from benchmarks.packing.fleets.fleet import Fleet
from benchmarks.packing.optimum import optimum
from benchmarks.packing.placing import Plan, faults
from benchmarks.packing.planner import planned

ONE_A_GPU = "one-a-gpu"
Rank = tuple[int, int]
"""Replicas without a place, and GPUs: less is better."""


@dataclass(frozen=True)
class Row:
    """One fleet: `optimum` is the fewest GPUs known that place everything, None where no such plan is known; `bound`
    those that none does without; `broken` the rules that our plan breaks.
    """

    fleet: str
    family: str
    replicas: int
    bound: int
    optimum: int | None
    proven: bool
    ours: Rank
    baselines: Mapping[str, Rank]
    broken: tuple[str, ...] = ()

    @property
    def ratio(self) -> float | None:
        """Ours over the proven optimum; None without one, or where ours leaves something out."""
        return self.ours[1] / self.optimum if self.proven and self.optimum and not self.ours[0] else None

    @property
    def extra(self) -> int | None:
        """Our GPUs beyond the proven optimum; None as with `ratio`."""
        return self.ours[1] - self.optimum if self.proven and self.optimum and not self.ours[0] else None

    @property
    def is_feasible(self) -> bool:
        """Whether a plan with everything placed is known."""
        return self.optimum is not None

    def document(self) -> dict[str, Any]:
        """Return the row for JSON."""
        return {
            "fleet": self.fleet,
            "replicas": self.replicas,
            "bound": self.bound,
            "optimum": self.optimum,
            "proven": self.proven,
            "gpus": self.ours[1],
            "unplaced": self.ours[0],
            **{name: {"gpus": rank[1], "unplaced": rank[0]} for name, rank in self.baselines.items()},
            **({"broken": list(self.broken)} if self.broken else {}),
        }


def compared(family: str, seed: int, effort: float) -> Row:
    """Return the row of one fleet; `effort` as in `optimum`."""
    fleet = fleet_of(family, seed)
    ours = planned(fleet)
    return row(fleet, family, ours, baselines(fleet), effort)


def row(fleet: Fleet, family: str, ours: Plan, rules: Mapping[str, Plan], effort: float) -> Row:
    """Return the row of a fleet whose plans are there."""
    broken = tuple(faults(fleet, ours))
    plans = [*([] if broken else [ours]), *rules.values()]
    result = optimum(fleet, plans, effort)
    single = one_a_gpu(fleet)
    ranks = {name: plan.rank for name, plan in rules.items()}
    if single <= fleet.gpus:
        ranks[ONE_A_GPU] = (0, single)
    gpus = result.plan.gpus if result.plan is not None else None
    return Row(fleet.name, family, fleet.replicas, result.bound, gpus, result.proven, ours.rank, ranks, broken)


def summary(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the numbers over all fleets, each family's, and each fleet's."""
    return {
        **_figures(rows),
        "families": {
            family: _figures(mine) | {"rules_over_optimum": _rules(mine)} for family, mine in _by_family(rows).items()
        },
        "rows": [one.document() for one in rows],
    }


def _figures(rows: Sequence[Row]) -> dict[str, Any]:
    proven = [one for one in rows if one.proven and one.optimum]
    ratios = [one.ratio for one in proven if one.ratio is not None]
    extra = [one.extra for one in proven if one.extra is not None]
    names = (*RULES, ONE_A_GPU)
    return {
        "fleets": len(rows),
        "proven": len(proven),
        "mean_over_optimum": fmean(ratios) if ratios else None,
        "worst_over_optimum": max(ratios, default=None),
        "at_optimum_share": sum(one.extra == 0 for one in proven) / len(proven) if proven else None,
        "worst_extra_gpus": max(extra, default=None),
        "unplaced_with_a_place": sum(one.ours[0] > 0 for one in rows if one.is_feasible),
        **{f"worse_than_{name.replace('-', '_')}": _worse(rows, name) for name in names},
        "plans_that_break_a_rule": sum(bool(one.broken) for one in rows),
    }


def _worse(rows: Iterable[Row], rule: str) -> int:
    """Return the fleets on which ours leaves more out than a rule, or takes more GPUs for as much."""
    return sum(one.ours > one.baselines[rule] for one in rows if rule in one.baselines)


def _rules(rows: Sequence[Row]) -> dict[str, float | None]:
    """Return each rule's mean over the proven optimum, of the fleets that it places completely."""
    ratios: dict[str, list[float]] = {name: [] for name in RULES}
    for one in rows:
        for name, every in ratios.items():
            missing, gpus = one.baselines[name]
            if one.proven and one.optimum and not missing:
                every.append(gpus / one.optimum)
    return {name: fmean(every) if every else None for name, every in ratios.items()}


def _by_family(rows: Iterable[Row]) -> dict[str, list[Row]]:
    families: dict[str, list[Row]] = {}
    for one in rows:
        families.setdefault(one.family, []).append(one)
    return families
