"""The parameter `chat`: what it may say, and what is wrong with it for a configuration's tensors."""

import pytest

from argosy_runtime.modelconfig import ConfigError, check, normalize, parse_text
from argosy_runtime.modelconfig.parameters.chat import ChatTensors, chat_tensors

CONFIG = """
backend: "python"
input { name: "question" data_type: TYPE_STRING dims: 1 }
input { name: "limit" data_type: TYPE_INT32 dims: 1 optional: true }
output { name: "answer" data_type: TYPE_STRING dims: 1 }
output { name: "blocked" data_type: TYPE_BOOL dims: -1 }
output { name: "scores" data_type: TYPE_FP32 dims: 4 }
parameters { key: "chat" value { string_value: '%s' } }
"""
RIGHT = '{"prompt": "question", "max_tokens": "limit", "text": "answer", "refused": "blocked"}'


def violations(chat: str) -> list[str]:
    """Return what is wrong with this parameter, in words."""
    result = check(normalize(parse_text(CONFIG % chat), "m"))
    assert {violation.path for violation in result} <= {'parameters["chat"]'}
    return [str(violation.message) for violation in result]


def test_a_right_declaration_is_read_and_has_no_fault() -> None:
    assert violations(RIGHT) == []
    expected = ChatTensors(text="answer", prompt="question", max_tokens="limit", refused="blocked")
    assert chat_tensors(parse_text(CONFIG % RIGHT)) == expected


def test_a_model_without_the_parameter_declares_no_chat() -> None:
    assert chat_tensors(parse_text('backend: "python"')) is None


@pytest.mark.parametrize(
    ("chat", "expected"),
    [
        ("{", "is no JSON"),
        ("[]", "must be a JSON object of tensor names"),
        ('{"text": 3}', "must be a JSON object of tensor names"),
        ('{"text": ""}', "must be a JSON object of tensor names"),
        ('{"text": "answer", "promt": "question"}', "has no 'promt'"),
        ('{"prompt": "question"}', "needs 'text'"),
        ('{"text": "answer"}', "needs prompt or messages"),
        ('{"text": "answer", "messages": "limit"}', "input 'limit' of TYPE_INT32; expected TYPE_STRING"),
        ('{"text": "answer", "prompt": "nothing"}', "names 'nothing', which is no input"),
        ('{"text": "question", "prompt": "question"}', "names 'question', which is no output"),
        ('{"text": "answer", "prompt": "question", "refused": "scores"}', "of dims [4]; expected one element"),
        ('{"text": "answer", "messages": "limit"}', "gives no value to input 'question'"),
    ],
)
def test_a_wrong_declaration_says_what_is_wrong(chat: str, expected: str) -> None:
    assert any(expected in message for message in violations(chat)), violations(chat)


def test_a_wrong_declaration_cannot_be_read() -> None:
    with pytest.raises(ConfigError, match="has no 'promt'"):
        chat_tensors(parse_text(CONFIG % '{"promt": "question", "text": "answer"}'))
