"""`argosy bench` against fake endpoints on loopback, from the command's arguments to its document."""

import asyncio
import json
import re
import threading
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path

import jsonschema
import pytest
import yaml
from tests.operator.bench.measuring import OUTPUT, measured
from tests.operator.bench.openai_server import Endpoint, serving
from typer.testing import CliRunner

from argosy.bench.load.run import Run, Settings
from argosy.bench.results import read_results, schema
from argosy.cli.application import application

QUICK = ("--prompt-tokens", "24", "--output-tokens", "6", "--requests", "4", "--repetitions", "2", "-c", "1,3")


@contextmanager
def endpoints(*models: Endpoint) -> Iterator[None]:
    """Serve the endpoints from a thread."""
    started, ended = threading.Event(), threading.Event()

    async def serve() -> None:
        async with AsyncExitStack() as stack:
            for endpoint in models:
                await stack.enter_async_context(serving(endpoint))
            loop = asyncio.get_running_loop()
            started.set()
            await loop.run_in_executor(None, ended.wait)

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    try:
        assert started.wait(30)
        yield
    finally:
        ended.set()
        thread.join()


def bench(*arguments: str):
    return CliRunner().invoke(application(["bench"]), ["bench", *arguments])


def test_two_endpoints_in_one_run(tmp_path: Path) -> None:
    first, second = Endpoint(), Endpoint(model="other")
    picture = tmp_path / "curve.svg"
    with endpoints(first, second):
        result = bench(
            f"a={first.url}/v1", f"b={second.url}", *QUICK, "--budget", "ttft=10s", "-o", "json", "--plot", str(picture)
        )
    assert result.exit_code == 0, result.output
    document = json.loads(result.stdout)
    jsonschema.validate(document, schema())
    results = read_results(result.stdout)
    assert [(trial.endpoint, trial.concurrency) for trial in results.trials] == [
        (name, level) for level in (1, 3) for name in "abba"
    ]
    assert {(trial.requests, trial.prompt_tokens) for trial in results.trials} == {(4, 96), (6, 144)}
    assert all(trial.output_tokens == 6 * trial.requests and not trial.errors for trial in results.trials)
    assert all(trial.chunks_per_token == 1 and trial.tokens_per_second > 0 for trial in results.trials)
    assert all(level.within_budget == 1 and level.goodput for level in results.levels)
    assert [ratio.concurrency for ratio in results.comparisons[0].ratios] == [1, 3]
    assert "crossover" in document
    loads = [[body["prompt"] for body in endpoint.requests if body.get("stream")] for endpoint in (first, second)]
    assert sorted(loads[0]) == sorted(loads[1])
    assert len(set(loads[0])) == len(loads[0]) == 2 * (5 + 3 + 6 + 2)
    assert first.most_in_flight == second.most_in_flight == 3
    assert {body["model"] for body in second.requests} == {"other"}
    assert picture.read_text().startswith("<?xml")


def test_a_chat_by_the_table() -> None:
    endpoint = Endpoint(overhead=11)
    with endpoints(endpoint):
        result = bench(endpoint.url, *QUICK, "--api", "chat", "--rate", "200")
    assert result.exit_code == 0, result.output
    assert "24 tokens in, 6 out" in result.stdout
    assert "3 at once" in result.stdout
    assert "200/s" in result.stdout
    assert all("messages" in body for body in endpoint.requests)


def test_endpoints_that_did_different_work_are_not_compared() -> None:
    right, short = Endpoint(), Endpoint(flaw="short")
    with endpoints(right, short):
        result = bench(f"a={right.url}", f"b={short.url}", *QUICK, "-o", "json")
    assert result.exit_code == 2
    results = read_results(result.stdout)
    assert (results.comparisons, results.crossover) == ([], None)
    assert results.refused == [
        "b: answers had 5 tokens instead of 6: it ignores ignore_eos or min_tokens, or limits max_tokens"
    ]
    assert "not compared: b: answers had 5 tokens" in result.stderr


def test_another_tokenizer_is_different_work() -> None:
    right, wrong = Endpoint(), Endpoint(count=len)
    with endpoints(right, wrong):
        result = bench(f"a={right.url}", f"b={wrong.url}", *QUICK, "-o", "json")
    assert result.exit_code == 2
    assert re.search(r"b: prompts had \d+ to \d+ tokens instead of 24", result.stderr)


@pytest.mark.parametrize(
    ("flaw", "reason"),
    [
        ("status", "HTTP 503: the engine is asleep"),
        ("cut", "the stream ended before [DONE]"),
        ("error", "the engine ended"),
        ("no usage", "the stream has no usage"),
    ],
)
def test_errors_are_shown_by_their_reason(flaw: str, reason: str) -> None:
    """The first of the two levels is complete; the other one fails and is not compared."""
    right, failing = Endpoint(), Endpoint(flaw=flaw, flawed_after=10)
    with endpoints(right, failing):
        result = bench(f"a={right.url}", f"b={failing.url}", *QUICK, "-o", "json")
    assert result.exit_code == 2, result.output
    results = read_results(result.stdout)
    failed = [trial for trial in results.trials if trial.errors]
    assert {(trial.endpoint, trial.concurrency) for trial in failed} == {("b", 3)}
    assert all(reason in error and count == 11 for trial in failed for error, count in trial.errors.items())
    assert results.refused == ["b at 3 at once: 6 of 6 requests failed"]
    assert [ratio.concurrency for ratio in results.comparisons[0].ratios] == [1]
    assert f"22 requests failed: b: {reason}" in result.stderr


def test_the_key_is_sent_and_its_refusal_is_shown(tmp_path: Path) -> None:
    key = tmp_path / "key"
    key.write_text("secret\n")
    endpoint = Endpoint(key="secret")
    with endpoints(endpoint):
        refused = bench(endpoint.url, *QUICK)
        accepted = bench(endpoint.url, *QUICK, "--api-key-file", str(key))
    assert refused.exit_code == 1
    assert "HTTP 401: Incorrect API key provided" in refused.stderr
    assert accepted.exit_code == 0, accepted.output


def test_an_unknown_model_names_those_that_there_are() -> None:
    endpoint = Endpoint()
    with endpoints(endpoint):
        result = bench(f"a={endpoint.url}", *QUICK, "-m", "a=mistral")
    assert result.exit_code == 1
    assert "has no model 'mistral'; there are llama" in result.stderr


def test_every_error_of_the_input_at_once(tmp_path: Path) -> None:
    arguments = ("ftp://x", "a=http://b", "a=http://c", "-c", "1,x", "-r", "0", "-b", "ttft:1s", "--timeout", "0s")
    result = bench(*arguments, "--tokenizer", str(tmp_path), "--plot", "x.pdf", "-m", "one", "-m", "two")
    assert result.exit_code == 1
    expected = (
        "ENDPOINT: 'ftp://x' is no endpoint",
        "ENDPOINT: two are named a",
        "--model two: --model one is for all endpoints already",
        "--concurrency: '1,x' is no list of numbers above 0, such as 1,8,32",
        "--rate: '0' is no list of numbers above 0",
        "--budget: 'ttft:1s' is no budget",
        "--timeout: must be more than 0s",
        "there is no tokenizer.json in it",
        "--plot x.pdf: must end with .png or .svg",
    )
    assert [part for part in expected if part not in result.stderr] == []


def test_nothing_listens() -> None:
    result = bench("http://127.0.0.1:9", *QUICK)
    assert result.exit_code == 1
    assert "cannot connect to http://127.0.0.1:9: is a server there? (Connection refused)" in result.stderr


VARIANTS = ("low=http://x", "high=http://x", "-m", "low=chat--low", "-m", "high=chat--high", "--hardware", "1x H100")


@pytest.mark.parametrize(("fastest", "code"), [(300.0, 0), (30.0, 2)])
def test_the_crossover_of_variants_as_a_patch(monkeypatch: pytest.MonkeyPatch, fastest: float, code: int) -> None:
    speeds = {"low": {1: 10.0, 8: 60.0, 64: 70.0}, "high": {1: 5.0, 8: 50.0, 64: fastest}}

    async def imagined(settings: Settings, progress: object) -> Run:
        return Run(settings, measured(speeds))

    monkeypatch.setattr("argosy.cli.bench.bench.run", imagined)
    result = bench(*VARIANTS, "--prompt-tokens", "10", "--output-tokens", str(OUTPUT), "-o", "patch")
    assert result.exit_code == code, result.output
    if code:
        assert (result.stdout, result.stderr) == (
            "", "low and high have no crossover: low at every level at which they differ\n"
        )  # fmt: skip
        return
    patch = yaml.safe_load(result.stdout)
    (entry,) = patch["spec"]["variants"]
    assert (patch["metadata"], entry["name"], entry["measurement"]["hardware"]) == ({"name": "chat"}, "low", "1x H100")


def test_a_patch_needs_variants_and_what_they_run_on_before_anything_is_measured() -> None:
    result = bench("a=http://127.0.0.1:9", "b=http://127.0.0.1:9", "-m", "a=chat--a", "-o", "patch")
    assert result.exit_code == 1
    assert "--hardware: a patch says on what it was measured" in result.stderr
    assert "--output patch: b is measured with model '', which is no variant" in result.stderr


def test_the_schema_describes_every_field() -> None:
    result = bench("--schema")
    assert result.exit_code == 0
    definitions = json.loads(result.stdout)["$defs"]
    assert set(definitions["Crossover"]["properties"]) == {
        "concurrency", "low", "high", "below", "above", "between", "confidence"
    }  # fmt: skip
