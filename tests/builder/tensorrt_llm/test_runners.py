"""Texts are read by the checkpoint as it came (transformers, for real) and by what was built (stand-ins)."""

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from argosy_agent.contract.builds import BuildFailure, DataSource, Gate
from argosy_builder.accuracy import judge
from argosy_builder.accuracy.language import LanguageRunner
from argosy_builder.contract import BuildError
from argosy_builder.data import Purpose, read_samples
from argosy_builder.process import isolated

from .conftest import TEXTS, Standins, a_request

GATE = Gate(DataSource("file:///texts"), metric="perplexity_ratio", maximum=1e9, baseline_precision="fp32")


def expected(checkpoint: Path, text: str, longest: int) -> tuple[float, int]:
    """Return the log-likelihood of a text by transformers' own loss."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    model = AutoModelForCausalLM.from_pretrained(checkpoint, dtype=torch.float32)
    ids = AutoTokenizer.from_pretrained(checkpoint)(text, return_tensors="pt")["input_ids"][:, :longest]
    with torch.inference_mode():
        loss = model(input_ids=ids, labels=ids).loss
    return -float(loss) * (ids.shape[1] - 1), ids.shape[1] - 1


def test_the_baseline_reads_texts_as_transformers_does(checkpoint: Path) -> None:
    with isolated("tensorrt_llm", checkpoint, a_request(gate=GATE), "the baseline") as runner:
        assert isinstance(runner, LanguageRunner)
        value, count = runner.log_likelihood(TEXTS[0])
        logits = runner.run({"input_ids": np.arange(1, 5)})["logits"]
        batch = runner.run(
            {"input_ids": np.array([[1, 2, 3, 4], [1, 2, 0, 0]]), "attention_mask": np.array([[1] * 4, [1, 1, 0, 0]])}
        )["logits"]
    likelihood, tokens = expected(checkpoint, TEXTS[0], 1024)
    assert (value, count) == (pytest.approx(likelihood, abs=1e-3), tokens)
    assert logits.shape == (4, batch.shape[-1])
    assert np.allclose(batch[0], logits, atol=1e-4)
    assert np.allclose(batch[1][:2], logits[:2], atol=1e-4)


def certain(ids: list[int], words: int) -> float:
    """Return the log-likelihood that the stand-in gives: the word after the last has a logit of 1, the others 0."""
    rows: NDArray[np.float64] = np.zeros((len(ids) - 1, words))
    rows[np.arange(len(ids) - 1), [(token + 1) % words for token in ids[:-1]]] = 1
    logs = rows - np.log(np.exp(rows).sum(axis=1, keepdims=True))
    return float(logs[np.arange(len(ids) - 1), ids[1:]].sum())


@pytest.mark.parametrize("options", [{"max_seq_len": 6}, {"backend": "pytorch", "max_seq_len": 6}])
def test_what_was_built_reads_the_same_tokens_of_a_text(
    options: dict[str, object], checkpoint: Path, build: Callable[..., Path], standins: Standins, texts: Path
) -> None:
    from transformers import AutoTokenizer

    request = a_request(options=options, gate=GATE)
    folder = build(request)
    words = json.loads((checkpoint / "config.json").read_text())["vocab_size"]
    ids = AutoTokenizer.from_pretrained(checkpoint)(TEXTS[0])["input_ids"][:5]
    with (
        isolated("tensorrt_llm", checkpoint, request, "the baseline") as baseline,
        isolated("tensorrt_llm", folder, request, "the engine") as engine,
    ):
        assert isinstance(baseline, LanguageRunner)
        assert isinstance(engine, LanguageRunner)
        value, count = engine.log_likelihood(TEXTS[0])
        samples = read_samples(texts, (), 0, Purpose.ACCURACY)
        report = judge(GATE, samples, baseline, engine, "2026-01-01T00:00:00Z")
        likelihood, tokens = baseline.log_likelihood(TEXTS[0])
    assert (value, count) == (pytest.approx(certain(ids, words), abs=1e-4), 4)
    assert tokens == 4
    assert likelihood == pytest.approx(expected(checkpoint, TEXTS[0], 5)[0], abs=1e-3)
    assert report.samples == len(TEXTS)
    assert report.baseline is not None
    assert report.engine is not None
    assert math.isclose(report.value, report.engine / report.baseline)
    (opened,) = [call for call in standins.calls if call["call"] == "LLM"]
    assert opened["gather_generation_logits"]
    assert opened["engines"] is ("backend" not in options)
    assert opened["kv_cache_config"]["free_gpu_memory_fraction"] == 0.1


def test_without_tensorrt_llm_an_engine_says_which_image_has_it(tmp_path: Path) -> None:
    (tmp_path / "rank0.engine").write_bytes(b"engine")
    with (
        pytest.raises(BuildError) as error,
        isolated("tensorrt_llm", tmp_path, a_request(), "the engine"),
    ):
        pass
    assert error.value.failure is BuildFailure.BUILDER_MISSING
    assert "'tensorrt_llm'" in error.value.message
