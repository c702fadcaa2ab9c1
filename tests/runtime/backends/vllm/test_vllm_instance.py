"""Requests to an instance on a stand-in of vLLM, which repeats prompts token by token."""

import json
import threading

import pytest
from tests.runtime.backends.vllm.engine_steps import only_error, sampling, settled, step, texts
from tests.runtime.language.language_requests import generation

from argosy_runtime.backends import vllm as backend
from argosy_runtime.backends.engines.commands import Sleep, Wake
from argosy_runtime.errors import ErrorKind, ServingError
from argosy_runtime.language import Chat, ResponseReader
from argosy_runtime.language.tensors import OUTPUTS
from argosy_runtime.messages import InferRequest, Tensor
from argosy_runtime.tensors import string_array

ALL = tuple(OUTPUTS)


def test_a_stream_has_a_response_for_every_step(open_instance, responder):
    instance = open_instance()
    instance.execute(
        [generation(ALL, text_input="abc", stream=True, sampling_parameters=sampling(max_tokens=4))], responder
    )
    responder.wait_for_final(0)
    responses, reader = responder.of(0), ResponseReader()
    deltas = [delta for response in responses for delta in reader.read(response)]
    assert "".join(delta.text for delta in deltas) == "abca"
    assert [token for delta in deltas for token in delta.token_ids] == [97, 98, 99, 97]
    assert [response.final for response in responses] == [False] * (len(responses) - 1) + [True]
    assert deltas[-1].finish_reason == "length"
    assert (reader.num_input_tokens, reader.num_cached_tokens, reader.total_output_tokens) == (3, 2, 4)


def test_without_a_stream_there_is_one_response_that_repeats_the_prompt(open_instance, responder):
    open_instance().execute(
        [
            generation(text_input="abc", sampling_parameters=sampling(max_tokens=4)),
            generation(text_input="abc", exclude_input_in_output=True),
            generation(("text_output",), input_ids=[97], exclude_input_in_output=False),
        ],
        responder,
    )
    responder.wait_for_final(0, 1, 2)
    assert texts(responder.of(0)) == ["abcabca"]
    assert texts(responder.of(1)) == ["abcabcabcabcabca"]
    assert texts(responder.of(2)) == ["a" * 17]


def test_a_chat_is_rendered_and_a_long_text_is_read_aside(open_instance, responder):
    instance = open_instance(max_model_len=30_000)
    chat = Chat([{"role": "user", "content": "xy"}]).packed()
    long = "z" * 20_000
    options = sampling(max_tokens=2)
    instance.execute(
        [
            generation(messages=chat, sampling_parameters=options),
            generation(text_input=long, exclude_input_in_output=True, sampling_parameters=options),
        ],
        responder,
    )
    responder.wait_for_final(0, 1)
    assert texts(responder.of(0)) == ["xy"]
    assert texts(responder.of(1)) == ["zz"]


def test_choices_have_their_indexes(open_instance, responder):
    instance = open_instance()
    options = sampling(n=2, max_tokens=2, temperature=1)
    greedy = sampling(n=3, max_tokens=2, temperature=0)
    instance.execute(
        [
            generation(ALL, text_input="ab", stream=True, sampling_parameters=options),
            generation(ALL, text_input="ab", exclude_input_in_output=True, sampling_parameters=options),
            generation(ALL, text_input="ab", stream=True, sampling_parameters=greedy),
        ],
        responder,
    )
    responder.wait_for_final(0, 1, 2)
    for index, choices in ((0, 2), (1, 2), (2, 3)):
        reader, made = ResponseReader(), dict.fromkeys(range(choices), "")
        for response in responder.of(index):
            for delta in reader.read(response):
                made[delta.index] += delta.text
        assert made == dict.fromkeys(range(choices), "ab")
        assert reader.num_output_tokens == dict.fromkeys(range(choices), 2)
    assert len(responder.of(1)) == 1


def test_an_answer_of_no_tokens_has_none(open_instance, responder):
    options = sampling(max_tokens=0)
    open_instance().execute([generation(ALL, text_input="ab", sampling_parameters=options)], responder)
    responder.wait_for_final(0)
    reader = ResponseReader()
    (delta,) = reader.read(responder.of(0)[0])
    assert (delta.text, delta.token_ids, delta.finish_reason) == ("ab", [], "length")
    assert (reader.num_input_tokens, reader.total_output_tokens) == (2, 0)


def test_logprobs_are_of_the_new_tokens(open_instance, responder):
    options = sampling(logprobs=1, max_tokens=2)
    open_instance().execute([generation(ALL, text_input="ab", stream=True, sampling_parameters=options)], responder)
    responder.wait_for_final(0)
    positions = [
        position
        for response in responder.of(0)
        for delta in ResponseReader().read(response)
        for position in delta.logprobs
    ]
    assert [(token, entry.logprob, entry.bytes) for position in positions for token, entry in position.items()] == [
        (97, -0.5, [97]),
        (98, -0.5, [98]),
    ]


def test_parameters_reach_the_engine(open_instance, responder, llm):
    instance = open_instance(scheduling_policy="priority")
    options = sampling(priority=-3, cache_salt="s", structured_outputs={"json": {"type": "object"}}, seed=5)
    instance.execute([generation(text_input="ab", sampling_parameters=options)], responder)
    responder.wait_for_final(0)
    ((prompt, parameters, _, adapter, priority),) = llm().calls
    assert prompt == {"type": "token", "prompt_token_ids": [97, 98], "cache_salt": "s"}
    assert (parameters.seed, parameters.temperature, parameters.structured_outputs.json) == (5, 0.5, {"type": "object"})
    assert (adapter, priority) == (None, -3)


@pytest.mark.parametrize(
    ("inputs", "kind", "message"),
    [
        ({"text_input": "a" * 70}, ErrorKind.INVALID_ARG, "maximum context length is 64 tokens"),
        ({"text_input": ""}, ErrorKind.INVALID_ARG, "the prompt is empty"),
        ({"input_ids": [5000]}, ErrorKind.INVALID_ARG, "input id 5000 is not in the vocabulary of 1000"),
        ({"input_ids": [-1]}, ErrorKind.INVALID_ARG, "input id -1 is not in the vocabulary"),
        ({"messages": b"{}"}, ErrorKind.INVALID_ARG, "is not a chat"),
        ({"text_input": "a", "sampling_parameters": sampling(temperature=-1)}, ErrorKind.INVALID_ARG, "'temperature'"),
        ({"text_input": "a", "sampling_parameters": sampling(temperature=3)}, ErrorKind.INVALID_ARG, "in [0, 2]"),
        ({"text_input": "a", "sampling_parameters": sampling(n=1000)}, ErrorKind.INVALID_ARG, "'n' is 1000"),
        ({"text_input": "a", "sampling_parameters": sampling(max_tokens=64)}, ErrorKind.INVALID_ARG, "'max_tokens'"),
        ({"text_input": "a", "sampling_parameters": sampling(priority=1)}, ErrorKind.INVALID_ARG, "scheduling_policy"),
        ({"text_input": "a", "sampling_parameters": sampling(lora_name="x")}, ErrorKind.NOT_FOUND, "it has none"),
        (
            {"text_input": "a", "sampling_parameters": sampling(structured_outputs={"regex": "("})},
            ErrorKind.INVALID_ARG,
            "the regex cannot be compiled",
        ),
        (
            {"text_input": "a!", "sampling_parameters": sampling(max_tokens=2)},
            ErrorKind.INTERNAL,
            "send the request again",
        ),
    ],
)
def test_a_refused_request_has_the_reason_and_hinders_no_other(open_instance, responder, inputs, kind, message):
    good = generation(text_input="ab", exclude_input_in_output=True, sampling_parameters=sampling(max_tokens=2))
    open_instance().execute([generation(**inputs), good], responder)
    error = only_error(responder)
    assert (error.kind, message in error.message) == (kind, True), error.message
    responder.wait_for_final(1)
    assert texts(responder.of(1)) == ["ab"]


def test_a_stream_that_cannot_be_sent_ends_alone(open_instance, responder, monkeypatch):
    send = responder.send

    def broken(index, response, wait=True):
        if index == 0 and response.error is None:
            raise RuntimeError("cannot be sent")
        send(index, response, wait)

    monkeypatch.setattr(responder, "send", broken)
    request = generation(text_input="ab", stream=True, sampling_parameters=sampling(max_tokens=3))
    open_instance().execute([request, request], responder)
    assert "RuntimeError: cannot be sent" in only_error(responder).message
    responder.wait_for_final(1)
    assert "".join(texts(responder.of(1))) == "aba"


def test_a_request_that_the_engine_does_not_take_is_answered(open_instance, responder, llm_class, monkeypatch):
    def refuse(self, request_id, prompt, params, **options):
        raise TypeError("add_request() got an unexpected keyword argument")

    monkeypatch.setattr(llm_class, "add_request", refuse)
    open_instance().execute([generation(text_input="ab")], responder)
    assert "unexpected keyword argument" in only_error(responder).message


def test_variables_of_the_environment_are_read_once(open_instance, llm_class):
    from vllm import envs

    open_instance()
    assert envs.cached


def test_deltas_wait_while_a_client_reads_slowly(open_instance, responder, llm, by_steps):
    instance = open_instance()
    options = sampling(max_tokens=4)
    instance.execute([generation(text_input="abcd", stream=True, sampling_parameters=options)], responder)
    responder.paused.add(0)
    step(llm(), 3)
    settled(llm())
    assert responder.of(0) == []
    responder.paused.clear()
    step(llm())
    responder.wait_for_final(0)
    assert texts(responder.of(0)) == ["abcd"]


def test_a_cancelled_request_is_aborted(open_instance, responder, llm, by_steps):
    instance = open_instance()
    instance.execute([generation(text_input="ab", stream=True)], responder)
    responder.cancelled.add(0)
    assert only_error(responder).kind is ErrorKind.CANCELLED
    settled(llm())
    assert (llm().open, len(llm().aborted)) == ({}, 1)


def test_a_dead_engine_ends_its_requests_and_the_instance_is_lost(open_instance, responder, llm, by_steps, host):
    instance = open_instance()
    instance.execute([generation(text_input="ab", stream=True)], responder)
    settled(llm())
    llm().loop.call_soon_threadsafe(llm().die)
    assert "model instance 'llm_0': its engine died: EngineCore" in host.losses.get(timeout=30).message
    assert only_error(responder).kind is ErrorKind.INTERNAL


def test_an_idle_engine_that_dies_is_noticed(open_instance, llm, host, monkeypatch):
    monkeypatch.setattr("argosy_runtime.backends.vllm.instance.REPORT_SECONDS", 0.0)
    open_instance()
    llm().loop.call_soon_threadsafe(llm().die)
    assert "its engine died" in host.losses.get(timeout=30).message


def test_closing_lets_requests_end(open_instance, responder, llm, by_steps):
    instance = open_instance()
    options = sampling(max_tokens=1)
    instance.execute(
        [generation(text_input="ab", exclude_input_in_output=True, sampling_parameters=options)], responder
    )
    settled(llm())
    engine, closed = llm(), threading.Event()
    threading.Thread(target=lambda: (instance.close(), closed.set())).start()
    settled(engine)
    assert not closed.is_set()
    step(engine)
    assert closed.wait(30)
    responder.wait_for_final(0)
    assert texts(responder.of(0)) == ["a"]
    assert engine.calls[-1] == ("shutdown", 5.0)
    instance.close = lambda: None


def test_states_are_reported(open_instance, responder, llm, host, by_steps, monkeypatch):
    monkeypatch.setattr("argosy_runtime.backends.vllm.instance.REPORT_SECONDS", 0.0)
    instance = open_instance(enable_lora=True, max_loras=3)
    options = sampling(max_tokens=2)
    instance.execute([generation(text_input="abc", stream=True, sampling_parameters=options)], responder)
    step(llm())
    settled(llm())
    assert (host.states[-1].running, host.states[-1].cache) == (1, 0.1)
    step(llm())
    responder.wait_for_final(0)
    settled(llm())
    states, last = host.states, host.states[-1]
    assert (last.running, last.cache, last.prompt_tokens, last.generated_tokens) == (0, 0.0, 3, 2)
    assert sum(sum(state.times.first_token.counts) for state in states) == 1
    assert last.adapters.at_once == 3
    assert last.cache_tokens == 8 * 16


def test_an_engine_sleeps_and_wakes(open_instance, responder, llm, host):
    instance = open_instance(enable_sleep_mode=True)
    instance.manage(Sleep())
    assert host.states[-1].asleep
    instance.execute([generation(text_input="ab")], responder)
    assert only_error(responder).kind is ErrorKind.UNAVAILABLE
    instance.manage(Wake())
    assert not host.states[-1].asleep
    instance.execute([generation(text_input="ab")] * 2, responder)
    responder.wait_for_final(1)
    calls = [call for call in llm().calls if isinstance(call[0], str)]
    assert calls == [("sleep", 1, "wait"), ("wake_up", None)]


def test_an_engine_that_cannot_sleep_says_so(open_instance):
    with pytest.raises(ServingError, match="start it with 'enable_sleep_mode'") as refused:
        open_instance().manage(Sleep())
    assert refused.value.kind is ErrorKind.UNSUPPORTED


def test_a_model_that_pools_makes_embeddings(open_instance, responder):
    names = ("embedding", "num_input_tokens")
    wrapped = json.dumps({"input": "abc", "pooling_params": {"dimensions": [2]}})
    instance = open_instance(runner="pooling")
    embedding_request = Tensor("embedding_request", "BYTES", string_array([wrapped.encode()], (1,)))
    instance.execute(
        [
            generation(names, text_input="ab"),
            InferRequest("llm", {"embedding_request": embedding_request}),
            generation(),
        ],
        responder,
    )
    responder.wait_for_final(0, 1, 2)
    assert [tensor.array.tolist() for tensor in responder.of(0)[0].outputs] == [[97.0, 98.0], [2]]
    assert json.loads(responder.of(1)[0].outputs[0].array.tolist()[0]) == [97.0, 98.0]
    assert "takes one of the inputs" in only_error(responder, 2).message


@pytest.mark.parametrize(
    ("error", "kind"),
    [(ValueError("no such dtype"), ErrorKind.INVALID_ARG), (RuntimeError("cut off"), ErrorKind.INTERNAL)],
)
def test_a_model_that_cannot_be_loaded_says_why(folder, host, llm_class, monkeypatch, error, kind):
    monkeypatch.setattr(llm_class, "load_error", error)
    with pytest.raises(ServingError, match=f"failed to load 'llm' version 1: .*{error}") as refused:
        backend.load(folder().spec(), host)
    assert refused.value.kind is kind


def test_an_unknown_argument_of_the_file_is_refused(folder, host, llm_class):
    with pytest.raises(ServingError, match="this vLLM has no argument 'max_len'"):
        backend.load(folder(max_len=5).spec(), host)
