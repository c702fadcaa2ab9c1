"""A language model on the real vLLM, as Triton's clients use it."""

import json
import os
import queue
import signal
import urllib.request
from typing import Any

import numpy as np
import pytest
from tests import tiny_llama
from tests.engines import repository
from tests.engines.engine_requests import GREEDY, engine_processes, gauge, generate, post, stream
from tests.peers.server import Server
from tests.waiting import wait
from tritonclient import grpc as triton

pytestmark = pytest.mark.timeout(1200)  # the first test installs the environment and starts the engine


def refused(server: Server, sampling: dict[str, Any] = GREEDY, expected: int = 400, **inputs: Any) -> str:
    """Return the message of a request that is refused."""
    body = {"sampling_parameters": json.dumps(sampling), **inputs}
    status, answer = post(server, "/v2/models/llm/generate", body)
    assert status == expected, (status, answer)
    return answer["error"]


def test_deltas_of_tritons_client_joined_are_the_answer(vllm_server):
    """Do what NVIDIA's example client for Triton's vLLM backend does."""
    answers: queue.Queue[tuple[Any, Any]] = queue.Queue()
    inputs = [
        triton.InferInput("text_input", [1], "BYTES"),
        triton.InferInput("stream", [1], "BOOL"),
        triton.InferInput("sampling_parameters", [1], "BYTES"),
        triton.InferInput("exclude_input_in_output", [1], "BOOL"),
    ]
    sampling = {name: str(value) for name, value in GREEDY.items()}
    inputs[0].set_data_from_numpy(np.array([b"Hello"], np.object_))
    inputs[1].set_data_from_numpy(np.array([True]))
    inputs[2].set_data_from_numpy(np.array([json.dumps(sampling).encode()], np.object_))
    inputs[3].set_data_from_numpy(np.array([True]))
    with triton.InferenceServerClient(vllm_server.grpc) as client:
        client.start_stream(lambda result, error: answers.put((result, error)))
        client.async_stream_infer(
            "llm", inputs, outputs=[triton.InferRequestedOutput("text_output")], request_id="7", parameters=sampling
        )
        pieces, is_last = [], False
        while not is_last:
            result, error = answers.get(timeout=300)
            assert error is None, error
            pieces.append(result.as_numpy("text_output"))
            is_last = result.get_response().parameters["triton_final_response"].bool_param
        client.stop_stream()
    text = b"".join(piece[0] for piece in pieces if piece is not None).decode()
    assert text == generate(vllm_server, text_input="Hello")["text_output"]
    assert len(pieces) > 2


def test_an_answer_may_begin_with_its_prompt(vllm_server):
    answer = generate(vllm_server, text_input="Hello", exclude_input_in_output=False)["text_output"]
    assert answer == "Hello" + generate(vllm_server, text_input="Hello")["text_output"]


def test_counts_reasons_and_logprobs_are_outputs(vllm_server):
    outputs = ["output_ids", "finish_reason", "num_input_tokens", "num_output_tokens", "logprobs", "cumulative_logprob"]
    answer = generate(vllm_server, {**GREEDY, "logprobs": 2}, text_input="Hello", outputs=outputs)
    assert (answer["num_input_tokens"], answer["num_output_tokens"], answer["finish_reason"]) == (5, 24, "length")
    positions = json.loads(answer["logprobs"])
    assert [int(next(iter(position))) for position in positions] == answer["output_ids"]
    chosen = sum(next(iter(position.values()))["logprob"] for position in positions)
    assert answer["cumulative_logprob"] == pytest.approx(chosen, rel=1e-4)


def test_choices_are_n_also_where_they_are_equal(vllm_server):
    greedy = generate(vllm_server, {**GREEDY, "n": 3}, text_input="Hello")["text_output"]
    assert greedy == [generate(vllm_server, text_input="Hello")["text_output"]] * 3
    sampled = {"n": 4, "temperature": 1.5, "max_tokens": 16, "ignore_eos": True, "seed": 3}
    assert len(set(generate(vllm_server, sampled, text_input="Hello")["text_output"])) > 1


def test_a_seed_repeats_an_answer(vllm_server):
    sampled = {"temperature": 1.0, "max_tokens": 16, "seed": 11, "ignore_eos": True}
    first = generate(vllm_server, sampled, text_input="Hello", outputs=["output_ids"])["output_ids"]
    assert generate(vllm_server, sampled, text_input="Hello", outputs=["output_ids"])["output_ids"] == first


def test_a_chat_is_rendered_by_the_tokenizers_template(vllm_server):
    chat = {"messages": [{"role": "user", "content": "Hi"}]}
    prompt = "user: Hi\nassistant:"
    answer = generate(vllm_server, messages=json.dumps(chat), outputs=["text_output", "num_input_tokens"])
    assert answer["num_input_tokens"] == len(prompt)
    assert answer["text_output"] == generate(vllm_server, text_input=prompt)["text_output"]
    problem = refused(vllm_server, messages=json.dumps({**chat, "chat_template": "{{ (10**(10**7)) % 7 }}"}))
    assert "model 'llm' takes no 'chat_template' in 'messages'" in problem


def test_a_prompt_that_was_seen_comes_from_the_cache(vllm_server):
    prompt = "A long beginning that two prompts share. " * 8
    outputs = ["num_cached_tokens", "num_input_tokens"]
    generate(vllm_server, text_input=prompt)
    hits = gauge(vllm_server, "vllm:prompt_tokens_cached_total")
    again = generate(vllm_server, text_input=prompt + "More", outputs=outputs)
    assert 128 <= again["num_cached_tokens"] < again["num_input_tokens"]
    wait(lambda: gauge(vllm_server, "vllm:prompt_tokens_cached_total") > hits, 0.1)
    salted = generate(vllm_server, {**GREEDY, "cache_salt": "mine"}, text_input=prompt, outputs=outputs)
    assert salted["num_cached_tokens"] == 0


def test_structured_outputs_hold(vllm_server):
    choice = {"temperature": 1, "structured_outputs": {"choice": ["yes", "no"]}}
    assert generate(vllm_server, choice, text_input="Well?")["text_output"] in ("yes", "no")
    schema = {"type": "object", "properties": {"a": {"enum": [1, 2]}}, "required": ["a"], "additionalProperties": False}
    limited = {"temperature": 1, "max_tokens": 60, "structured_outputs": {"json": schema}}
    assert json.loads(generate(vllm_server, limited, text_input="{")["text_output"])["a"] in (1, 2)


def test_an_adapter_changes_the_answer(vllm_server):
    adapted = generate(vllm_server, {**GREEDY, "lora_name": "other"}, text_input="Hello", outputs=["output_ids"])
    base = generate(vllm_server, text_input="Hello", outputs=["output_ids"])
    assert adapted["output_ids"] != base["output_ids"]
    problem = refused(vllm_server, {**GREEDY, "lora_name": "absent"}, 404, text_input="Hello")
    assert "model 'llm' has no adapter 'absent'; it has other" in problem


def test_an_adapter_is_a_model_of_every_protocol(vllm_server):
    adapted = generate(vllm_server, {**GREEDY, "lora_name": "other"}, text_input="Hello")
    with urllib.request.urlopen(f"http://127.0.0.1:{vllm_server.ports.http}/v1/models") as listed:
        models = json.load(listed)["data"]
    assert {model["id"]: model.get("parent") for model in models} == {"llm": None, "other": "llm"}
    body = {"model": "other", "prompt": "Hello", "max_tokens": GREEDY["max_tokens"], "temperature": 0}
    status, answer = post(vllm_server, "/v1/completions", body)
    assert (status, answer["choices"][0]["text"]) == (200, adapted["text_output"])


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("rank", "LoRA rank 64 is greater than max_lora_rank 16"),
        ("modules", "no_such_proj"),
        ("base", "is of hidden size 64, and the model's is 128"),
        ("cut", "is cut off or broken"),
    ],
)
def test_an_adapter_that_does_not_fit_is_refused_alone(vllm_server, vllm_repository, name, message):
    tiny_llama.save_bad_adapter(vllm_repository / f"bad-{name}", vllm_repository / "llm/1", name)
    with stream(vllm_server, "Hello", {"max_tokens": 200, "ignore_eos": True}, return_finish_reason=True) as events:
        next(events)
        status, answer = post(vllm_server, f"/v2/repository/models/bad-{name}/load", {})
        rest = list(events)
    assert (status, rest[-1]["finish_reason"]) == (400, "length")
    assert message in answer["error"]
    status, answer = post(vllm_server, "/v1/completions", {"model": f"bad-{name}", "prompt": "Hello"})
    assert status == 503
    assert message in answer["error"]["message"]
    assert generate(vllm_server, {**GREEDY, "lora_name": "other"}, text_input="Hello")["text_output"]


def test_stop_strings_end_an_answer(vllm_server):
    text = generate(vllm_server, text_input="Hello")["text_output"]
    stop = text[1]
    stopped = {**GREEDY, "stop": stop}
    answer = generate(vllm_server, stopped, text_input="Hello", outputs=["text_output", "finish_reason", "stop_reason"])
    assert (answer["text_output"], answer["finish_reason"]) == (text[: text.index(stop)], "stop")
    assert json.loads(answer["stop_reason"]) == stop


@pytest.mark.parametrize(
    ("sampling", "text", "message"),
    [
        ({}, "x" * 100_000, f"maximum context length is {repository.POSITIONS} tokens, but the prompt has 100000"),
        ({"max_tokens": 5000}, "Hello", f"maximum context length is {repository.POSITIONS} tokens"),
        ({"n": 1000}, "Hello", "'n' is 1000, expected 1 to 128"),
        ({"temperature": -1}, "Hello", "'temperature' is -1, expected 0 or more"),
        ({"structured_outputs": {"json": {"type": "nonsense"}}}, "Hello", ""),
        ({"structured_outputs": {"regex": "("}}, "Hello", ""),
        ({"logprobs": 10_000}, "Hello", "logprobs"),
        ({"allowed_token_ids": [10_000]}, "Hello", "token_id"),
    ],
)
def test_what_cannot_be_answered_is_refused(vllm_server, sampling, text, message):
    answer = refused(vllm_server, sampling, text_input=text)
    assert message in answer, answer
    assert generate(vllm_server, text_input="Hello")["text_output"]


def test_a_temperature_close_to_zero_is_greedy(vllm_server):
    tiny = {**GREEDY, "temperature": 1e-9}
    assert generate(vllm_server, tiny, text_input="Hello") == generate(vllm_server, text_input="Hello")


def test_a_client_that_goes_frees_the_cache(vllm_server):
    long = {"max_tokens": 4000, "temperature": 0, "ignore_eos": True}
    with stream(vllm_server, "Hello", long) as events:
        next(events)
        wait(lambda: gauge(vllm_server, "vllm:num_requests_running") == 1, 0.1)
        assert gauge(vllm_server, "vllm:kv_cache_usage_perc") > 0
    wait(lambda: gauge(vllm_server, "vllm:num_requests_running") == 0, 0.1)
    wait(lambda: gauge(vllm_server, "vllm:kv_cache_usage_perc") == 0, 0.1)


def test_a_client_that_does_not_read_holds_up_no_other(vllm_server):
    """Leave megabytes of an answer unread, more than the sockets hold, and read them in the end."""
    tokens = {"max_tokens": 400, "n": 8, "temperature": 1, "seed": 1, "ignore_eos": True, "logprobs": 20}
    flags = {"return_logprobs": True, "return_num_output_tokens": True, "return_finish_reason": True}
    with stream(vllm_server, "Hello", tokens, receive_buffer=4096, **flags) as events:
        first = next(events)
        for _ in range(3):
            assert generate(vllm_server, text_input="Hello")["text_output"]
        rest = list(events)
    positions = [json.loads(event["logprobs"]) for event in rest]
    assert [len(position) for position in positions] == [event["num_output_tokens"] for event in rest]
    assert sum(event["num_output_tokens"] for event in [first, *rest]) == 8 * 400
    assert [event["finish_reason"] for event in rest].count("length") == 8


def test_a_checkpoint_that_is_cut_off_is_named(vllm_server):
    status, answer = post(vllm_server, "/v2/repository/models/broken/load", {})
    assert status == 400
    assert "model.safetensors' is cut off or broken: it has " in answer["error"]


def test_an_engine_that_is_killed_ends_its_streams_and_comes_back(vllm_server):
    long = {"max_tokens": 4000, "temperature": 0, "ignore_eos": True}
    (engine,) = engine_processes(vllm_server.process.pid)
    with stream(vllm_server, "Hello", long) as events:
        next(events)
        os.kill(engine, signal.SIGKILL)
        *_, last = events
    assert "its engine died" in last["error"]
    assert "it is being restarted" in last["error"]
    assert generate(vllm_server, text_input="Hello")["text_output"]
