"""The comparison of an engine with its file: what is timed answers, and both take their turns."""

from pathlib import Path

import numpy as np
from benchmarks.engines.models import CLASSES, WIDTH, perceptron
from benchmarks.engines.serving import Served, in_turns


def test_a_file_answers_through_its_backend_in_its_turn(tmp_path: Path) -> None:
    subject = perceptron(tmp_path)
    served = Served(subject, subject.file)
    x = np.ones((3, WIDTH), np.float32)

    assert served.answer(x).shape == (3, CLASSES)
    rounds = in_turns([served, served], x, rounds=2, seconds=0.01)
    assert [len(entries) for entries in rounds] == [2, 2]
    assert min(map(min, rounds)) > 0
