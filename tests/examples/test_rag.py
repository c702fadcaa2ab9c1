"""The example rag: its manifests, its index, its stages, and answers by OpenAI's client with their sources."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import openai
import pytest
from tests.acceptance.running import Starter, Workspace, free_ports
from tests.examples.conftest import Collector

from argosy.api import InferenceModel
from argosy.local.manifests.reading import read_manifests
from argosy.planning.facts import Node
from argosy.reconcile import reconcile
from argosy.render.config.configrules import check_together
from argosy.render.config.model_config import Devices, model_config
from argosy.snapshot import FleetSnapshot
from argosy_runtime.backends import resolve
from argosy_runtime.backends.contract import InstanceSpec
from argosy_runtime.messages import Array, InferRequest, Tensor
from argosy_runtime.tensors import string_array, string_elements

ROOT = Path(__file__).parents[2]
RAG = ROOT / "examples" / "rag"
PATIENCE_S = 180.0
STAGES = {"words", "embed", "retrieve", "rerank", "augment", "llm", "cite"}
DATATYPES = {"f": "FP32", "i": "INT32", "O": "BYTES", "b": "BOOL"}

Stage = Callable[..., dict[str, Array]]


def text(value: str) -> Array:
    """Return a text as a tensor with a batch of one."""
    return string_array([value.encode()], (1, 1))


def stage(name: str, **parameters: str) -> Iterator[Stage]:
    """Yield a function that runs a stage alone, as its backend does."""
    resources = read_manifests(RAG).resources
    (model,) = [item for item in resources if isinstance(item, InferenceModel) and item.name == name]
    config = model_config(model, Devices(), [1])
    for key, value in {"ISOLATION": "thread", **parameters}.items():
        config.parameters[key].string_value = value
    folder = RAG / "models" / name
    spec = InstanceSpec(config, 1, folder, folder, f"{name}_0", "KIND_CPU", 0)
    instance = resolve("python").load(spec, host=None)  # type: ignore[arg-type]  # no stage calls the server

    def run(**arrays: Array) -> dict[str, Array]:
        tensors = {key: Tensor(key, DATATYPES[array.dtype.kind], array) for key, array in arrays.items()}
        collector = Collector()
        instance.execute([InferRequest(name, tensors)], collector)
        (response,) = collector.responses
        assert response.error is None
        return {tensor.name: tensor.array for tensor in response.outputs}

    yield run
    instance.close()


def document(array: Array) -> Any:
    """Return the JSON in a tensor."""
    return json.loads(string_elements(array)[0])


@pytest.fixture(scope="module")
def retrieve() -> Iterator[Stage]:
    yield from stage("retrieve")


@pytest.fixture(scope="module")
def augment() -> Iterator[Stage]:
    yield from stage("augment")


def test_one_cpu_node_serves_it_all() -> None:
    manifests = read_manifests(RAG)
    assert not manifests.problems
    assert check_together(manifests.resources) == []
    outcome = reconcile(FleetSnapshot(tuple(manifests.resources), (Node("laptop", ()),)), datetime.now(UTC))
    assert not outcome.problems
    ((step,),) = outcome.steps.values()
    assert {model.name for model in step.repository.models} == {*STAGES, "embedder", "rag"}


def test_both_stages_with_documents_have_the_same() -> None:
    texts = [(RAG / "models" / name / "documents.json").read_bytes() for name in ("retrieve", "augment")]
    assert texts[0] == texts[1]
    vectors = np.load(RAG / "models" / "retrieve" / "embeddings.npy")
    assert vectors.shape == (len(json.loads(texts[0])), 384)
    assert np.allclose(np.linalg.norm(vectors.astype(np.float32), axis=1), 1, atol=1e-2)


def test_a_document_is_nearest_to_itself(retrieve: Stage) -> None:
    vectors = np.load(RAG / "models" / "retrieve" / "embeddings.npy").astype(np.float32)
    documents = json.loads((RAG / "models" / "retrieve" / "documents.json").read_text())
    result = retrieve(question=text(documents[7]["title"]), embedding=vectors[7:8])
    assert result["candidates"].shape == (1, 20)
    assert result["candidates"][0, 0] == 7
    cosine, bm25, share, has_title = result["features"][0, 0]
    assert cosine == pytest.approx(1, abs=1e-2)
    assert bm25 > 0
    assert (share, has_title) == (1, 1)


def augmented(augment: Stage, best: float, **more: Array) -> dict[str, Array]:
    """Return what the stage makes of candidates 0 to 19, of which 5 and 3 are relevant."""
    relevance = np.zeros((1, 20), np.float32)
    relevance[0, 5], relevance[0, 3] = best, best / 1.2
    candidates = np.arange(20, dtype=np.int32)[None]
    return augment(question=text("How?"), candidates=candidates, relevance=relevance, **more)


def test_the_prompt_is_about_the_most_relevant_document(augment: Stage) -> None:
    result = augmented(augment, 0.9, max_tokens=np.array([[7]], np.int32), streaming=np.array([[True]]))
    sources = document(result["sources"])
    assert [source["relevance"] for source in sources] == [0.9, 0.75]
    assert document(result["messages"])["messages"][0]["content"] == f"What is {sources[0]['title']}?"
    assert document(result["sampling_parameters"]) == {"max_tokens": 7, "temperature": 0}
    assert result["stream"].tolist() == [[True]]


def test_without_a_relevant_document_nothing_is_generated(augment: Stage) -> None:
    result = augmented(augment, 0.4)
    assert document(result["sources"]) == []
    assert document(result["sampling_parameters"])["max_tokens"] == 0


def test_a_model_that_reads_gets_the_passages() -> None:
    for run in stage("augment", prompt="passages"):
        result = augmented(run, 0.9)
        content = document(result["messages"])["messages"][0]["content"]
        sources = document(result["sources"])
        assert all(f"[{at}] {source['title']}: {source['text']}" in content for at, source in enumerate(sources, 1))
        assert content.endswith("Question: How?")


def test_sources_follow_the_last_piece() -> None:
    sources = string_array([json.dumps([{"title": "len", "text": "Return it."}]).encode()], (1, 1))
    for run in stage("cite"):
        for reason, end in ((b"None", ""), (b"stop", "\n\nSources:\n[1] len: Return it.")):
            generated, finish = string_array([b"piece"], (1,)), string_array([reason], (1,))
            result = run(generated=generated, reason=finish, sources=sources)
            assert string_elements(result["text"])[0].decode() == f"piece{end}"
            assert string_elements(result["finish_reason"])[0] == reason


def test_the_index_can_be_built_again(tmp_path: Path) -> None:
    command = [sys.executable, str(RAG / "build_index.py"), "--documents=25", "--steps=5", f"--out={tmp_path}"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("25 documents; of 15 questions")
    assert np.load(tmp_path / "retrieve" / "embeddings.npy").shape == (25, 384)
    assert (tmp_path / "rerank" / "model.onnx").stat().st_size


class Example(Workspace):
    """The example's own manifests, with a state of the test's."""

    @property
    def manifests(self) -> Path:
        return RAG


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[openai.OpenAI]:
    """Yield OpenAI's client of the example, served by `argosy up`."""
    starter = Starter(Example(tmp_path_factory.mktemp("rag")), free_ports())
    try:
        up = starter()
        deadline = time.monotonic() + PATIENCE_S
        while "Ensemble rag v1: Ready=True" not in up.output:
            assert up.process.poll() is None, up.output
            assert time.monotonic() < deadline, up.output
            time.sleep(0.1)
        with openai.OpenAI(base_url=f"{up.url}/v1", api_key="none", max_retries=0, timeout=60) as client:
            yield client
    finally:
        starter.end()


def ask(client: openai.OpenAI, question: str, **fields: Any) -> Any:
    return client.chat.completions.create(
        **{"model": "rag", "messages": [{"role": "user", "content": question}], **fields}
    )


@pytest.mark.xdist_group("rag")
def test_a_question_is_answered_with_its_sources(client: openai.OpenAI) -> None:
    answer = ask(client, "Which module reads csv files?").choices[0].message.content
    assert answer.startswith("csv.py - read/write/investigate CSV files.\n\nSources:\n[1] the csv module: csv.py")
    assert {model.id for model in client.models.list()} == {"embedder", "rag"}


@pytest.mark.xdist_group("rag")
def test_a_stream_ends_with_the_sources(client: openai.OpenAI) -> None:
    options = {"include_usage": True}
    *chunks, last = ask(client, "What is the with statement?", stream=True, stream_options=options)
    pieces = [chunk.choices[0].delta.content or "" for chunk in chunks]
    assert sum(map(bool, pieces)) > 5
    text = "".join(pieces)
    assert text.startswith('The "with" statement is used to wrap the execution')
    assert "\n\nSources:\n[1] the with statement: " in text
    assert chunks[-1].choices[0].finish_reason == "stop"
    assert last.usage.completion_tokens > 5
    assert last.usage.total_tokens == last.usage.prompt_tokens + last.usage.completion_tokens


@pytest.mark.xdist_group("rag")
@pytest.mark.parametrize("stream", [False, True])
def test_a_truncated_answer_says_so(client: openai.OpenAI, stream: bool) -> None:
    options = {"stream": True, "stream_options": {"include_usage": True}} if stream else {}
    answer = ask(client, "What is the with statement?", max_tokens=5, **options)
    *_, end, usage = [*answer] if stream else [answer, answer]
    assert end.choices[0].finish_reason == "length"
    assert usage.usage.completion_tokens == 5
    assert usage.usage.prompt_tokens > 5


@pytest.mark.xdist_group("rag")
def test_an_answer_without_a_source_reports_that(client: openai.OpenAI) -> None:
    answer = ask(client, "How do I bake a cake?")
    assert answer.choices[0].message.content == "I found nothing about that in Python's documentation."
    assert answer.choices[0].finish_reason == "stop"
    assert answer.usage.completion_tokens == 0


@pytest.mark.xdist_group("rag")
def test_the_embedder_is_a_model_of_embeddings(client: openai.OpenAI) -> None:
    texts = ["The cat sits on the mat.", "A cat is sitting on a mat.", "Stock markets fell on Monday."]
    answer = client.embeddings.create(model="embedder", input=texts)
    one, two, other = (np.array(item.embedding) for item in answer.data)
    assert np.linalg.norm(one) == pytest.approx(1, abs=1e-3)
    assert one @ two > 0.8 > 0.4 > one @ other
    assert answer.usage.prompt_tokens > 15
