"""The packing benchmark: seeded fleets, a checker that finds what is wrong with a plan, baselines, the optimum."""

import json
from dataclasses import replace

import pytest
from benchmarks.packing import churn, large
from benchmarks.packing.__main__ import main
from benchmarks.packing.baselines import baselines, one_a_gpu
from benchmarks.packing.bounds import lower_bound
from benchmarks.packing.comparing import Row, row, summary
from benchmarks.packing.fleets.every_kind import every_kind
from benchmarks.packing.fleets.families import FAMILIES, FIRST_SEEDS, JUDGE, TUNE, fleet_of
from benchmarks.packing.fleets.fleet import Ensemble, Fleet, Machine, Model, Pool
from benchmarks.packing.optimum import optimum
from benchmarks.packing.placing import Plan, Server, faults
from benchmarks.packing.planner import planned

NODE = Machine("n", 4, 10_000, "G", ((0, 1), (2, 3)))
"""9,000 MiB of each GPU may be taken."""


def fleet(*models: Model, ensembles: tuple[Ensemble, ...] = (), machines: tuple[Machine, ...] = (NODE,)) -> Fleet:
    return Fleet("test", machines, models, ensembles)


def drawn(family: str, half: str, count: int) -> list[Fleet]:
    return [fleet_of(family, FIRST_SEEDS[half] + number) for number in range(count)]


def server(gpus: set[int], models: dict[str, tuple[int, ...]], pool: str = "fleet", machine: str = "n") -> Server:
    return Server(pool, machine, frozenset(gpus), models)


@pytest.mark.parametrize("family", FAMILIES)
def test_fleets_are_drawn_by_their_seeds_and_the_halves_have_none_in_common(family: str) -> None:
    judged = drawn(family, JUDGE, 3)
    assert judged == drawn(family, JUDGE, 3)
    assert all(30 <= len(one.models) <= 60 for one in judged)
    assert not {one.models for one in judged} & {one.models for one in drawn(family, TUNE, 3)}


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_is_planned_by_the_operator_and_by_plain_rules_without_a_fault(family: str) -> None:
    (one,) = drawn(family, TUNE, 1)
    plans = {"ours": planned(one), **baselines(one)}
    assert {name: faults(one, plan) for name, plan in plans.items()} == {name: [] for name in plans}
    for plan in plans.values():
        assert plan.missing or plan.gpus >= lower_bound(one)


PAIR = (Model("a", 5000, 500), Model("b", 4000, 500))
TWICE = (Model("a", 1000, replicas=2),)
TIED = (Ensemble("e", ("a", "b")),)


@pytest.mark.parametrize(
    ("models", "ensembles", "servers", "says"),
    [
        (PAIR, (), [server({0}, {"a": (0,), "b": (0,)})], None),
        (PAIR, (), [server({0}, {"a": (0,)}), server({0}, {"b": (0,)})], "GPU 0 of n has 2 servers"),
        (PAIR, (), [server({0}, {"a": (0,), "b": (1,)})], "b is on GPUs that its server does not hold"),
        (PAIR, (), [server({9}, {"a": (9,), "b": (9,)})], "n lacks some of the GPUs [9]"),
        (PAIR, (), [server({0, 1}, {"a": (0, 1), "b": (0,)})], "a has 2 GPUs and needs 1"),
        (PAIR, (), [server({0}, {"a": (0,)})], "b has 0 of 1 replicas, and 0 unplaced"),
        (PAIR, TIED, [server({0}, {"a": (0,)}), server({1}, {"b": (1,)})], "e is divided over servers"),
        (TWICE, (), [server({0}, {"a": (0,)})], "a has 1 of 2 replicas, and 0 unplaced"),
        ((PAIR[0], Model("b", 4001)), (), [server({0}, {"a": (0,), "b": (0,)})], "GPU 0 of n has 9001 MiB of 9000"),
        (
            (PAIR[0], Model("b", 1, 501)),
            (),
            [server({0}, {"a": (0,), "b": (0,)})],
            "GPU 0 of n has more compute than one GPU",
        ),
        (
            (Model("a", 9000, gpus=2),),
            (),
            [server({1, 2}, {"a": (1, 2)})],
            "a is on GPUs of n that NVLink does not join",
        ),
        (
            (Model("a", 10, gpus=1), Model("b", 10)),
            (),
            [server({0}, {"a": (0,), "b": (0,)})],
            "GPU 0 of n is shared with a model that takes whole GPUs",
        ),
    ],
)
def test_the_checker_finds_what_is_wrong_with_a_plan(models, ensembles, servers, says) -> None:
    result = faults(fleet(*models, ensembles=ensembles), Plan(tuple(servers)))
    assert (says in result) if says else not result


def test_the_checker_keeps_pools_apart() -> None:
    pools = (Pool("fleet", "H"), Pool("other"))
    one = replace(fleet(Model("a", 10), Model("b", 10, pool="other")), pools=pools)
    result = faults(one, Plan((server({0}, {"a": (0,), "b": (0,)}),)))
    assert result == ["n is no node of pool fleet", "b is on a server of pool fleet"]


@pytest.mark.parametrize(
    ("models", "ensembles", "gpus"),
    [
        # By falling size 5, 4 and 4, 3, 2 would take three GPUs.
        ([Model(f"m{at}", 1000 * size) for at, size in enumerate((5, 4, 4, 3, 2))], (), 2),
        # One of them takes a domain, so that the other domain has the rest.
        ([Model("w", 9000, gpus=2), Model("a", 5000), Model("b", 5000)], (), 4),
        # The ensemble's two GPUs are one server, which takes one replica of r alone.
        (
            [Model("a", 5000), Model("b", 5000), Model("r", 4000, replicas=2)],
            (Ensemble("e", ("a", "b")),),
            3,
        ),
        # A replica of the ensemble takes a domain and a third GPU on the same node.
        ([Model("w", 9000, gpus=2), Model("a", 5000), Model("b", 4000)], (Ensemble("e", ("w", "a")),), 3),
        ([Model("a", 1000, replicas=4)], (), 4),
    ],
)
def test_the_optimum_is_proven_and_obeys_every_rule(models, ensembles, gpus) -> None:
    pytest.importorskip("ortools", reason="OR-Tools proves it: pip install 'argosy[packing]'")
    one = fleet(*models, ensembles=ensembles)
    result = optimum(one, (), effort=5)
    assert result.proven
    assert result.plan is not None
    assert (result.plan.gpus, faults(one, result.plan)) == (gpus, [])
    assert lower_bound(one) <= gpus <= one_a_gpu(one)


def test_that_not_everything_fits_is_proven() -> None:
    pytest.importorskip("ortools", reason="OR-Tools proves it: pip install 'argosy[packing]'")
    result = optimum(fleet(*(Model(f"m{at}", 5000) for at in range(5))), (), effort=5)
    assert (result.plan, result.proven) == (None, True)


def test_a_plan_at_the_bound_is_proven_without_a_search() -> None:
    plan = Plan((server({0}, {"a": (0,), "b": (0,)}),))
    assert optimum(fleet(*PAIR), (plan,), effort=0).proven
    assert not optimum(fleet(*PAIR), (), effort=0).proven


def test_a_plan_that_leaves_out_what_fits_is_at_no_optimum() -> None:
    one = fleet(*PAIR)
    rules = baselines(one)
    less = Plan((server({0}, {"a": (0,)}),), {"b": 1})
    result = summary([row(one, "f", less, rules, 0), row(one, "f", rules["first-fit"], rules, 0)])
    assert (result["unplaced_with_a_place"], result["at_optimum_share"]) == (1, 0.5)
    assert (result["worse_than_first_fit"], result["mean_over_optimum"]) == (1, 1.0)


def test_ratios_are_of_proven_optima_alone() -> None:
    def judged(optimal: int | None, proven: bool, gpus: int) -> Row:
        return Row("f-1", "f", 9, 8, optimal, proven, (0, gpus), {"first-fit": (0, 11), "best-fit": (0, 10)})

    rows = [judged(10, True, 12), judged(10, True, 10), judged(9, False, 20), judged(None, True, 20)]
    result = summary([replace(one, baselines={**one.baselines, "worst-fit": (0, 12)}) for one in rows])
    assert (result["fleets"], result["proven"], result["worst_extra_gpus"]) == (4, 2, 2)
    assert (result["mean_over_optimum"], result["worst_over_optimum"]) == (pytest.approx(1.1), 1.2)
    assert (result["worse_than_first_fit"], result["worse_than_worst_fit"]) == (3, 2)
    assert result["families"]["f"]["rules_over_optimum"]["first-fit"] == pytest.approx(1.1)


def test_a_large_fleet_has_every_kind() -> None:
    one = every_kind(60, 1)
    assert one.ensembles
    assert any(model.gpus for model in one.models)
    assert any(model.replicas > 1 for model in one.models)


def test_the_figures_of_a_large_fleet_have_its_number_of_models() -> None:
    figures = large.measured(24, 1)
    assert figures["over_bound_24"] is None or figures["over_bound_24"] >= 1
    assert {"plan_24_cpu_s", "plan_24_short_cpu_s", "change_one_cpu_ms", "round_one_change_cpu_ms"} <= figures.keys()


def test_what_comes_and_goes_leaves_a_fleet_that_a_plan_from_nothing_is_compared_with() -> None:
    figures = churn.measured(8, 1, running=16)
    assert figures["gpus_after_churn"] / figures["gpus_fresh"] == figures["after_churn_over_fresh"]


def test_it_prints_json_and_draws(tmp_path, capsys) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib draws it: pip install 'argosy[pictures]'")
    picture = tmp_path / "packing.svg"
    arguments = ["--fleets", "1", "--effort", "0", "--models", "0", "--changes", "0", "--workers", "1"]
    assert main(["heavy-tail", *arguments, "--json", "--plot", str(picture)]) == 0
    result = json.loads(capsys.readouterr().out)
    assert list(result["families"]) == ["heavy-tail"]
    assert [one["fleet"] for one in result["rows"]] == ["heavy-tail-5000"]
    assert picture.read_text().startswith("<?xml")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["heavy-tails"], "there is no family heavy-tails; there are one-size"),
        (["--fleets", "0"], "must be from 1 to 1000; found '0'"),
        (["--models", "x"], "must be a whole number of at least 0; found 'x'"),
        (["--workers", "0"], "must be a whole number of at least 1; found '0'"),
        (["--effort", "-1"], "must be a number of at least 0; found '-1'"),
        (["--effort", "nan"], "must be a number of at least 0; found 'nan'"),
    ],
)
def test_wrong_arguments_are_refused_in_words(capsys, arguments: list[str], says: str) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(arguments)
    assert says in capsys.readouterr().err
