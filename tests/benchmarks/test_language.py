"""What `benchmarks.language` makes of answers, and its checkpoint; engines run when it is called."""

import asyncio
import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from benchmarks.language import __main__ as command
from benchmarks.language.checkpoints import checkpoint
from benchmarks.language.front_end import Measured, MismatchError, Plan, figures, measure
from benchmarks.language.regimes import FEW, MANY, RAMP, ROUTED, NoCrossoverError, crossover, ramp_figures
from benchmarks.language.systems import Load
from benchmarks.language.waking import Wakes, wake_figures
from tests.operator.bench.virtual_time import run

from argosy.bench.answers import Answer
from argosy.bench.load.counting import tokenizer_counter
from argosy.bench.load.driver import drive
from argosy.bench.prompts import Vocabulary, samples

WORDS = Vocabulary.of([len(text.split()) for text in samples()])
PLAN = Plan(concurrencies=(1, 4), repetitions=2, requests=8, prompt_tokens=16, output_tokens=5)


class FakeSystem:
    """Takes `first` seconds until the first token and `step` for each one after it, and `cpu` seconds for a token."""

    def __init__(self, name: str, first: float, step: float, cpu: float = 0.0, short: int = 0) -> None:
        self.name = name
        self.prompts: list[Sequence[str]] = []
        self._times = (first, step)
        self._short = short
        self._cpu = cpu
        self._tokens = 0

    async def answers(self, load: Load) -> list[Answer]:
        self.prompts.append(load.prompts)
        loop = asyncio.get_running_loop()
        first, step = self._times

        async def send(body: bytes, intended: float) -> Answer:
            count = load.output_tokens - self._short
            sent = loop.time()
            arrivals = [sent + first + step * number for number in range(count)]
            await asyncio.sleep(arrivals[-1] - sent)
            self._tokens += count
            return Answer(intended, sent, arrivals, loop.time(), len(body.split()), count)

        return await drive(send, [text.encode() for text in load.prompts], load.level, load.seed, loop.time)

    def front_end_cpu(self) -> float:
        return self._tokens * self._cpu


async def _all(*systems: FakeSystem) -> list[Measured]:
    return [one async for one in measure(systems, WORDS, PLAN)]


def test_the_targets_are_ratios_and_differences_of_the_same_run() -> None:
    systems = (
        FakeSystem("engine", 0.10, 0.1),
        FakeSystem("argosy", 0.11, 0.1, 20e-6),
        FakeSystem("peer", 0.12, 0.2, 1e-6),
    )
    measured = run(_all(*systems))
    assert [one.system for one in measured[:6]] == ["engine", "argosy", "peer", "peer", "argosy", "engine"]
    result = figures(measured, "argosy", "engine", "peer")
    assert result["frontend_over_engine"] == pytest.approx(0.5 / 0.51)
    assert result["ttft_added_ms"] == pytest.approx(10)
    assert result["vs_vllm_serve"] == pytest.approx(0.92 / 0.51)
    assert result["ttft_vs_vllm_serve"] == pytest.approx(11 / 12)
    assert result["cpu_us_per_token_argosy_4"] == pytest.approx(20)
    assert result["cpu_us_per_token_peer_1"] == pytest.approx(1)


def test_all_systems_get_the_same_prompts_and_none_twice() -> None:
    systems = FakeSystem("a", 0.1, 0.1), FakeSystem("b", 0.1, 0.1)
    run(_all(*systems))
    sent = [[text for prompts in system.prompts for text in prompts] for system in systems]
    assert sorted(sent[0]) == sorted(sent[1])
    assert len(set(sent[0])) == len(sent[0])


def test_other_work_is_refused() -> None:
    with pytest.raises(MismatchError, match=r"short: \(16, 4\)"):
        run(_all(FakeSystem("short", 0.1, 0.1, short=1)))


def test_the_regimes_figure_is_the_worst_step_next_to_the_better_variant() -> None:
    """`few` gives 100 tokens/s and `many` 10 for each request in flight; the pair loses 1 %, at one step 10 %."""
    ramp = []
    for step, level in enumerate(RAMP):
        better = max(100, 10 * level)
        for repetition in range(2):
            number = 2 * step + repetition
            routed = better * (0.9 if step == 3 else 0.99)
            for name, rate in ((FEW, 100), (MANY, 10 * level), (ROUTED, routed)):
                ramp.append(Measured(name, level, number, rate, 1.0, 1.0))
    figures = ramp_figures(ramp)
    assert figures["regime_worst"] == pytest.approx(0.9)
    assert sorted(figures["regime_ratios"])[1:] == pytest.approx([0.99] * 12)


def test_the_limit_is_the_crossover_rounded_down() -> None:
    alone = [
        Measured(name, level, repetition, rate, 1.0, 1.0)
        for level in (1, 4, 16, 64)
        for repetition in range(2)
        for name, rate in ((FEW, 100 + repetition), (MANY, 10 * level + repetition))
    ]
    assert crossover(alone, (1, 4, 16, 64)) in (9, 10)
    with pytest.raises(NoCrossoverError):
        crossover([one for one in alone if one.concurrency <= 4], (1, 4))


def test_a_wake_is_compared_with_the_load_of_its_round() -> None:
    figures = wake_figures(Wakes([30.0, 40.0, 35.0], [31.0, 41.5, 36.0], [32.0, 41.0, 38.0]))
    assert figures["engine_load_s"] == 35.0
    assert (figures["wake_asleep_beyond_s"], figures["wake_unloaded_beyond_s"]) == (1.0, 2.0)
    assert figures["wake_p95_s"] == pytest.approx(2.9)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--wakes", "0"), "argument --wakes: '0' is not a number from 1 to 64"),
        (("--ramps", "-1"), "argument --ramps: expected one argument|'-1' is not a number"),
        (("--concurrencies", "8", "65"), "'65' is not a number from 1 to 64"),
        (("--hidden", "100"), "'100' is no multiple of 64"),
        (("--parts", "sleep"), "argument --parts: invalid choice: 'sleep'"),
        (("--only", "wake"), "unrecognized arguments: --only"),
    ],
)
def test_flags_without_a_meaning_are_refused(
    flags: tuple[str, ...], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        command.main(list(flags))
    assert ended.value.code == 2
    assert re.search(words, capsys.readouterr().err)


def test_a_part_that_cannot_be_measured_leaves_the_figures_of_the_others(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("transformers", reason="transformers makes the model: pip install 'argosy[transformers]'")

    async def no_crossover(*arguments: object) -> dict[str, float]:
        raise NoCrossoverError("few is better at every level")

    async def wakes(*arguments: object) -> dict[str, float]:
        return {"wake_p95_s": 1.5}

    monkeypatch.setattr(command, "regimes", no_crossover)
    monkeypatch.setattr(command, "waking", wakes)
    assert command.main(["--json", "--hidden", "64", "--layers", "1", "--parts", "waking", "regimes"]) == 1
    printed = capsys.readouterr()
    assert json.loads(printed.out) == {"wake_p95_s": 1.5}
    assert "regimes: not measured: NoCrossoverError: few is better at every level" in printed.err


def test_every_token_of_the_checkpoint_is_a_character(tmp_path: Path) -> None:
    pytest.importorskip("transformers", reason="transformers makes it: pip install 'argosy[transformers]'")
    checkpoint(tmp_path, hidden=64, layers=1, longest=64)
    count = tokenizer_counter(tmp_path)
    assert count("the sun, 1!") == 11
    assert Vocabulary.of([count(text) for text in samples()]).tokens["tree"] == 5
    assert (tmp_path / "model.safetensors").exists()
