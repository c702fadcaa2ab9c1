"""The soak, for two seconds, against a real server; and what it counts."""

import json

import pytest
from benchmarks.soak.__main__ import main
from benchmarks.soak.tally import Tally
from tritonclient.utils import InferenceServerException

ACTIVITIES = ("requests", "streams", "sequences", "regions", "cancellations", "loads", "trace_files")


def test_a_short_soak_finds_a_sound_server(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--minutes", "0.035", "--json"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert [figures[key] for key in ("wrong_answers", "lost_answers", "failed_answers")] == [0, 0, 0]
    assert {"rss_growth_mb", "fd_growth"} <= figures.keys()
    assert min(figures[key] for key in ACTIVITIES) > 0


def test_only_errors_of_the_server_are_answers() -> None:
    tally = Tally()
    tally.fail("frail", InferenceServerException("model instance 'frail_0': its process ended"), may_fail=True)
    tally.fail("double", InferenceServerException("Request for unavailable model: 'double'"), may_fail=False)
    tally.fail("double", InferenceServerException("Deadline Exceeded"), may_fail=True)
    tally.judge(right=False)
    assert (tally.requests, tally.failed_answers, tally.lost_answers, tally.wrong_answers) == (4, 1, 1, 1)
