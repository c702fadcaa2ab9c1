"""A result is read back from its line as it was, and from no other line."""

import pytest

from argosy.bench.profile.lines import RESULT, Measured, result_line, result_of
from argosy.bench.profile.points import Failure, Memory, Point, Sweep

POINTS = [Point(1, 4, 12.5, 0.1, 0.2, 8, Memory(2**30)), Point(2, 4, 20.0, 0.1, 0.25, 16, Memory(2**30, 2**31))]
MEASURED = Measured(Sweep(POINTS, [Failure(2, 8, "CUDA out of memory\nof the GPU")]), "NVIDIA-L4")


def test_a_result_is_read_back() -> None:
    assert result_of(result_line(MEASURED)) == MEASURED
    assert "\n" not in result_line(MEASURED)


@pytest.mark.parametrize("line", ["", "1 instance: loading", RESULT + "{", RESULT + '{"points": [[1]]}', RESULT + "[]"])
def test_any_other_line_has_none(line: str) -> None:
    assert result_of(line) is None
