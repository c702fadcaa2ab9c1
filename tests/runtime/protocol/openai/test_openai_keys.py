"""Files of API keys, and the header that has one."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from argosy_runtime.protocol.openai.errors import ApiError
from argosy_runtime.protocol.openai.keys import ApiKeys, KeyFileError


def digest(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


KEYS = ApiKeys.parse(f"# people\n\nsha256:{digest('one')}\nteam-a:sha256:{digest('two').upper()}\n")


@pytest.mark.parametrize("header", ["Bearer one", "bearer two", "Bearer  one "])
def test_a_key_of_the_file_is_accepted(header: str) -> None:
    KEYS.check(header)


@pytest.mark.parametrize(
    "header", [None, "", "one", "Basic one", "Bearer", "Bearer ", "Bearer three", "Bearer one two"]
)
def test_any_other_is_not(header: str | None) -> None:
    with pytest.raises(ApiError) as caught:
        KEYS.check(header)
    assert (caught.value.status, caught.value.code) == (401, "invalid_api_key")


@given(st.text(st.characters(codec="latin-1"), max_size=40).filter(lambda key: key.strip() not in ("one", "two")))
def test_any_text_is_refused_alike(key: str) -> None:
    with pytest.raises(ApiError):
        KEYS.check("Bearer " + key)


@pytest.mark.parametrize(
    "text", ["", "# none\n", "one", "sha256:xyz", f"sha256:{digest('one')[:-1]}", f"a b:sha256:{digest('one')}"]
)
def test_a_file_without_hashes_is_refused(text: str) -> None:
    with pytest.raises(KeyFileError):
        ApiKeys.parse(text)


def test_an_error_shows_no_key() -> None:
    with pytest.raises(KeyFileError) as caught:
        ApiKeys.parse("my-secret-key")
    assert "my-secret-key" not in str(caught.value)
    assert digest("one") not in repr(KEYS)
