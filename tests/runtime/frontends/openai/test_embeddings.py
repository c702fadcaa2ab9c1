"""Embeddings, by the official client."""

import openai
import pytest
from tests.runtime.frontends.openai.embedders import SIZE, EmbeddingPlane

PLANE = EmbeddingPlane


@pytest.mark.parametrize("encoding", ["float", "base64", None])
def test_texts_get_embeddings_in_their_order(client: openai.OpenAI, encoding: str | None) -> None:
    fields = {} if encoding is None else {"encoding_format": encoding}
    answer = client.embeddings.create(model="pooling", input=["a", "bbb", "cc"], **fields)
    assert [item.index for item in answer.data] == [0, 1, 2]
    values = [item.embedding for item in answer.data]
    if encoding == "base64":
        assert all(isinstance(value, str) for value in values)
    else:
        assert values == [[1 / 8] * SIZE, [3 / 8] * SIZE, [2 / 8] * SIZE]
    assert (answer.usage.prompt_tokens, answer.usage.total_tokens) == (6, 6)
    assert (answer.model, answer.object) == ("pooling", "list")


@pytest.mark.parametrize(
    ("texts", "sizes"),
    [("four", [4]), ([1, 2, 3], [3]), ([[1, 2], [3]], [2, 1]), (["x"], [1])],
)
def test_an_input_is_a_text_or_tokens_or_several_of_them(
    client: openai.OpenAI, texts: object, sizes: list[int]
) -> None:
    answer = client.embeddings.create(model="pooling", input=texts)
    assert [item.embedding[0] * 8 for item in answer.data] == sizes


def test_a_pipeline_takes_texts_with_a_batch_of_one(client: openai.OpenAI, plane: EmbeddingPlane) -> None:
    answer = client.embeddings.create(model="plain", input="abc", dimensions=SIZE)
    assert answer.data[0].embedding == [3 / 8] * SIZE
    assert answer.usage.total_tokens == 0
    assert plane.requests[-1].inputs["text_input"].array.shape == (1, 1)


def test_a_model_that_can_makes_shorter_embeddings(client: openai.OpenAI) -> None:
    answer = client.embeddings.create(model="pooling", input="abc", dimensions=2)
    assert answer.data[0].embedding == [3 / 8] * 2


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"input": []}, "input"),
        ({"input": ""}, "input"),
        ({"input": ["a", ""]}, "input"),
        ({"input": ["a", 3]}, "input"),
        ({"input": ["a"] * 2049}, "input"),
        ({"input": "a", "model": "plain", "dimensions": 2}, "dimensions"),
        ({"input": "a", "dimensions": 0}, "dimensions"),
        ({"input": [1, 2], "model": "plain"}, "input"),
        ({"input": "a", "encoding_format": "int8"}, "encoding_format"),
        ({"input": "a" * 101}, "input"),
    ],
)
def test_what_cannot_be_embedded_is_named(client: openai.OpenAI, fields: dict[str, object], param: str) -> None:
    with pytest.raises(openai.BadRequestError) as raised:
        client.embeddings.create(**{"model": "pooling", **fields})
    assert raised.value.param == param


def test_models_have_one_kind_of_answer(client: openai.OpenAI) -> None:
    others = "/v1/chat/completions and /v1/completions and /v1/responses"
    with pytest.raises(openai.NotFoundError, match=f"'talker' does not answer /v1/embeddings; it answers {others}"):
        client.embeddings.create(model="talker", input="a")
    with pytest.raises(
        openai.NotFoundError, match="'pooling' does not answer /v1/responses; it answers /v1/embeddings"
    ):
        client.responses.create(model="pooling", input="a", store=False)
    with pytest.raises(openai.NotFoundError, match="'pooling' does not answer /v1/chat/completions"):
        client.chat.completions.create(model="pooling", messages=[{"role": "user", "content": "a"}])
