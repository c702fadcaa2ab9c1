"""What the comparison with Triton asks, and how it counts."""

from benchmarks.comparison.comparing import Cell
from benchmarks.comparison.load import Load, loads, models, needed
from benchmarks.comparison.measuring import Measured
from benchmarks.triton.results import cells, row

LOAD = Load("identity", "http", 8, 64)


def test_a_ratio_is_the_median_of_the_rounds_own_ratios() -> None:
    slow_minute = (Measured(100, 10, 90, 500), Measured(50, 20, 30, 1000))
    usual = (Measured(300, 10, 20, 50), Measured(200, 20, 40, 100))
    cell = Cell(LOAD, (usual, slow_minute, usual))
    assert (cell.ratio, cell.p99_ratio, cell.cpu_ratio) == (1.5, 0.5, 0.5)
    assert row(cell)["argosy_cpu_us"] == 50
    assert row(cell)["triton_rate"] == 200


def test_a_load_that_failed_is_reported_as_zeros() -> None:
    failed = row(Cell(LOAD, ()))
    assert failed["ratio"] == failed["argosy_rate"] == 0
    assert cells(failed)[:4] == ["identity", "http", "8", "64"]


def test_a_stream_is_requested_over_grpc_alone() -> None:
    cells = list(loads(["identity", "stream"], ["http", "grpc"], [1], [64]))
    assert [(load.model, load.protocol) for load in cells] == [
        ("identity", "http"),
        ("identity", "grpc"),
        ("stream", "grpc"),
    ]
    assert "--streaming" in cells[-1].arguments()
    assert "INPUT0:16" in cells[0].arguments()


def test_called_models_are_served_too() -> None:
    assert needed(["bls"]) == {"bls", "identity"}
    assert needed(models()) == set(models())


def test_tensors_in_shared_memory_have_a_location_for_the_output_too() -> None:
    (load,) = loads(["identity"], ["http"], [1], [4096], shared_memory=True)
    assert {"--shared-memory=system", "--output-shared-memory-size=4096"} < set(load.arguments())
    assert row(Cell(load, ()))["protocol"] == "http shm"
    assert "--shared-memory=system" not in LOAD.arguments()
