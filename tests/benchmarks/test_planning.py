"""The benchmark of planning: what runs stays, and all that has no place is told why, or it stops."""

from benchmarks.planning import main, measured, one_changed, running


def test_it_measures_every_size_and_overload(tmp_path):
    file = tmp_path / "planning.json"
    assert main(["--gpus", "16", "32", "--rounds", "1", "--json", str(file)]) == 0
    assert '"round_s_32_unplaced_25"' in file.read_text()
    figures = measured((16, 32), rounds=1)
    assert {
        "round_s_16_unplaced_0",
        "round_s_32_unplaced_100",
        "growth_unplaced_25",
        "change_one_s_32",
    } <= figures.keys()
    assert all(value > 0 for name, value in figures.items() if not name.startswith("growth"))


def test_in_its_fleet_every_gpu_has_a_model_and_one_of_them_changes():
    facts = running(16, 50)
    assert (len(facts.nodes), len(facts.groups), len(facts.current)) == (2, 24, 2)
    changed = one_changed(facts)
    assert [a.name for a, b in zip(facts.groups, changed.groups, strict=True) if a != b] == ["m-00012"]
