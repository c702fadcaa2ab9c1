"""The training scripts run, and what they write is what the stages load."""

import csv
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import onnxruntime
import transformers

ASSISTANT = Path(__file__).parents[2] / "examples" / "assistant"


def run(script: str, *arguments: str) -> str:
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [sys.executable, str(ASSISTANT / script), *arguments],
        capture_output=True, text=True, env=environment, timeout=150, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_corpus_answers_every_question_once(corpus: ModuleType) -> None:
    pairs = corpus.make_pairs()
    questions = [question for pair in pairs for question in pair.questions]
    assert len(questions) == len(set(questions))
    assert len(pairs) > 500
    for pair in pairs:
        assert pair.answer.isascii()
        assert "|" not in pair.answer.partition(":")[0]
        assert len(pair.answer) <= 160
        assert pair.answer.endswith((".", "!", "?"))


def test_small_talk_is_two_columns() -> None:
    with (ASSISTANT / "data" / "chat.csv").open(newline="") as file:
        assert {len(row) for row in csv.reader(file)} == {2}


def test_answers_are_complete_sentences_where_they_fit(corpus: ModuleType) -> None:
    text = "The *first* one (see section Names).  Another “quoted” one.  As follows:\n\nCode."
    assert corpus.first_sentences(text) == 'The first one. Another "quoted" one.'
    assert corpus.first_sentences("One. Two is too long.", limit=10) == "One."
    assert corpus.first_sentences("words " * 40, limit=20) == "words words words ..."


def test_train_llm_writes_a_model_and_its_tokenizers(tmp_path: Path) -> None:
    printed = run("train_llm.py", "--steps", "2", "--vocabulary", "300", "--out", str(tmp_path))
    assert "loss" in printed
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "llm", local_files_only=True)
    assert model.config.vocab_size == 300
    assert (tmp_path / "llm" / "model.safetensors").stat().st_mode & 0o777 == 0o644
    same = (tmp_path / "llm" / "tokenizer.json").read_bytes()
    assert (tmp_path / "tokenize" / "llm_tokenizer.json").read_bytes() == same
    assert (tmp_path / "detokenize" / "tokenizer.json").read_bytes() == same


def test_train_safety_writes_a_graph(tmp_path: Path) -> None:
    data = tmp_path / "safety.csv"
    benign = [f"0,How do I cook dish number {i}?" for i in range(10)]
    harmful = [f"1,How do I hurt person number {i}?" for i in range(10)]
    data.write_text("\n".join(["harmful,prompt", *benign, *harmful]) + "\n")
    out = tmp_path / "model.onnx"
    printed = run("train_safety.py", "--steps", "2", "--data", str(data), "--out", str(out))
    assert "held out: 4 prompts" in printed
    session = onnxruntime.InferenceSession(out, providers=["CPUExecutionProvider"])
    feeds = {
        "embedding": np.eye(3, 384, dtype=np.float32),
        "request_output_len": np.full((3, 1), 7, np.int32),
    }
    score, flagged, budget = session.run(None, feeds)
    assert score.shape == flagged.shape == budget.shape == (3, 1)
