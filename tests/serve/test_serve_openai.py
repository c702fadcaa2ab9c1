"""OpenAI's own client on a process as its users start it: a language model on the reference engine, keys, a port."""

import hashlib
import re
from collections.abc import Iterator

import httpx
import openai
import pytest
from tests import tiny_llama
from tests.serve import process
from tests.waiting import wait

KEY = "a-long-random-key"
CHAT: list[dict[str, str]] = [{"role": "user", "content": "Grüße 🙂"}]


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[process.Serving]:
    """Yield a server with the model `tiny`, of which OpenAI's API has a port of its own and needs a key."""
    folder = tmp_path_factory.mktemp("openai")
    version = folder / "models/tiny/1"
    tiny_llama.save(version)
    (version.parent / "config.pbtxt").write_text('backend: "transformers"\n')
    keys = folder / "keys"
    keys.write_text(f"sha256:{hashlib.sha256(KEY.encode()).hexdigest()}\n")
    flags = ("--openai-port=0", f"--openai-api-keys-file={keys}", "--http-restricted-api=inference:x-inner=secret")
    started = process.start(folder / "models", folder / "server.log", *flags)
    yield started.wait_until_ready()
    started.end()


@pytest.fixture
def client(serving: process.Serving) -> Iterator[openai.OpenAI]:
    (address,) = re.findall(r"OpenAI API at (\S+)", serving.text)
    with openai.OpenAI(base_url=address, api_key=KEY, max_retries=0) as client:
        yield client


def test_a_stream_is_the_answer_in_pieces(client: openai.OpenAI) -> None:
    options = {"model": "tiny", "messages": CHAT, "temperature": 0, "max_tokens": 24}
    answer = client.chat.completions.create(**options)  # type: ignore[call-overload]
    chunks = list(
        client.chat.completions.create(**options, stream=True, stream_options={"include_usage": True})  # type: ignore[call-overload]
    )
    text = "".join(chunk.choices[0].delta.content or "" for chunk in chunks if chunk.choices)
    assert text == answer.choices[0].message.content
    assert chunks[-1].usage == answer.usage
    assert answer.usage.completion_tokens == 24


def test_parameters_of_sampling_act(client: openai.OpenAI) -> None:
    def texts(**options: object) -> list[str]:
        answer = client.completions.create(model="tiny", prompt="Once", **options)  # type: ignore[call-overload]
        return [choice.text for choice in answer.choices]

    assert texts(seed=3, max_tokens=9, temperature=1) == texts(seed=3, max_tokens=9, temperature=1)
    assert len(set(texts(n=3, temperature=1.5, max_tokens=12))) == 3
    assert texts(max_tokens=0, echo=True) == ["Once"]
    assert len(texts(best_of=4, n=2, temperature=1, max_tokens=4)) == 2


def test_probabilities_join_to_the_bytes_of_the_text(client: openai.OpenAI) -> None:
    answer = client.chat.completions.create(
        model="tiny",
        messages=CHAT,  # type: ignore[arg-type]
        max_tokens=16,
        temperature=0,
        logprobs=True,
        top_logprobs=3,
    )
    logprobs = answer.choices[0].logprobs
    assert logprobs is not None
    content = logprobs.content or []
    assert len(content) == 16
    raw = b"".join(bytes(token.bytes or []) for token in content)
    assert raw.decode(errors="replace") == answer.choices[0].message.content
    assert all(token.logprob == token.top_logprobs[0].logprob for token in content)


@pytest.mark.parametrize(("encoding", "start"), [("text", "TEXT named_metrics."), ("json", "JSON {")])
def test_generate_says_how_full_the_engines_cache_is(serving: process.Serving, encoding: str, start: str) -> None:
    def load() -> str:
        answer = httpx.post(
            f"http://127.0.0.1:{serving.ports['HTTP']}/v2/models/tiny/generate",
            json={"text_input": "Once", "max_tokens": 3},
            headers={"endpoint-load-metrics-format": encoding, "x-inner": "secret"},
            timeout=60,
        )
        assert answer.status_code == 200
        return answer.headers.get("endpoint-load-metrics", "")

    wait(lambda: load().startswith(start), 0.2)
    value = load().replace('"', "")
    numbers = re.findall(r"(kv_cache_utilization|max_token_capacity)[=:]([0-9.]+)", value)
    assert [name for name, _ in numbers] == ["kv_cache_utilization", "max_token_capacity"]
    (_, share), (_, tokens) = numbers
    assert 0 <= float(share) < 1
    assert int(tokens) >= 256


def test_errors(client: openai.OpenAI, serving: process.Serving) -> None:
    with pytest.raises(openai.BadRequestError) as long:
        client.chat.completions.create(model="tiny", messages=[{"role": "user", "content": "x" * 100_000}])
    assert long.value.code == "context_length_exceeded"
    with pytest.raises(openai.BadRequestError) as unable:
        client.chat.completions.create(model="tiny", messages=CHAT, logit_bias={"3": 1})  # type: ignore[arg-type]
    assert unable.value.param == "logit_bias"
    with pytest.raises(openai.NotFoundError):
        client.chat.completions.create(model="nobody", messages=CHAT)  # type: ignore[arg-type]
    with pytest.raises(openai.AuthenticationError):
        client.with_options(api_key="another").models.list()
    assert serving.ask("/v1/models")[0] == 404
    assert serving.ask("/v2/models/tiny/generate", {"text_input": "x"})[0] == 403


def test_statistics_have_these_requests_too(client: openai.OpenAI, serving: process.Serving) -> None:
    client.completions.create(model="tiny", prompt="a", max_tokens=2)
    (count,) = re.findall(r'nv_inference_request_success\{model="tiny",version="1"\} (\d+)', serving.metrics())
    assert int(count) > 0
