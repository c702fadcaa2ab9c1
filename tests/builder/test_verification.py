"""Language models are compared one after the other: GPUs that an engine needs may not hold the baseline too."""

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from argosy_agent.contract.builds import BuildRequest, DataSource, Gate
from argosy_builder import verification
from argosy_builder.contract import Array, BuildError, Runner
from argosy_builder.data import Samples
from argosy_builder.verification import Evidence

GATE = Gate(DataSource("file:///texts"), metric="perplexity_ratio", maximum=2.0)
REQUEST = BuildRequest("tensorrt_llm", "9.0", "image", "file:///engines", DataSource("file:///model"))
TEXTS = ("one two", "three", "one two")


class Silent:
    """A runner that reads no texts."""

    def run(self, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
        """Return the inputs."""
        return inputs


class Reader(Silent):
    """A language model that gives every token the same likelihood."""

    def __init__(self, surprise: float) -> None:
        self._surprise = surprise

    def log_likelihood(self, text: str) -> tuple[float, int]:
        """Return the log-likelihood and the number of the text's words."""
        return -self._surprise * len(text.split()), len(text.split())


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what was opened and closed, in order, where runners are those of the folders' names."""
    happened: list[str] = []

    @contextmanager
    def isolated(builder: str, folder: Path, request: BuildRequest, name: str) -> Iterator[Runner]:
        happened.append(f"open {name}")
        yield Reader(float(folder.name)) if folder.name != "silent" else Silent()
        happened.append(f"close {name}")

    monkeypatch.setattr(verification, "isolated", isolated)
    return happened


def test_texts_are_read_by_one_after_the_other(opened: list[str]) -> None:
    progress: list[tuple[int, str]] = []
    evidence = Evidence(GATE, Samples((), "digest", texts=TEXTS))
    report = evidence.measured(REQUEST, Path("1.0"), Path("1.5"), "now", lambda *line: progress.append(line))

    assert opened == ["open the baseline", "close the baseline", "open the engine", "close the engine"]
    assert report.baseline == pytest.approx(math.exp(1.0))
    assert report.engine == pytest.approx(math.exp(1.5))
    assert report.passed
    assert report.samples == len(TEXTS)
    assert [percent for percent, _ in progress] == [16, 33, 50, 66, 83, 100]
    assert progress[-1][1] == "the engine has read 3 of 3 texts"


def test_what_reads_no_texts_says_so(opened: list[str]) -> None:
    evidence = Evidence(GATE, Samples((), "digest", texts=TEXTS))
    with pytest.raises(BuildError, match="holds texts, which this builder's models do not read"):
        evidence.measured(REQUEST, Path("silent"), Path("1.0"), "now", lambda *line: None)
