"""What a Prometheus is asked with, out of a Secret."""

import base64

import pytest

from argosy.signals.login import Login, login_of


def secret(**data: str) -> dict[str, dict[str, str]]:
    return {"data": {key: base64.b64encode(value.encode()).decode() for key, value in data.items()}}


def test_a_token_is_taken_without_its_line_end() -> None:
    assert login_of("ns/s", secret(token="abc\n", username="u", password="p")) == Login(token="abc")


def test_a_username_needs_its_password() -> None:
    assert login_of("ns/s", secret(username="u", password="p")) == Login(username="u", password="p")
    assert "neither token nor username and password, but username" in login_of("ns/s", secret(username="u")).error


@pytest.mark.parametrize("body", [{}, {"data": None}, secret(), secret(other="x"), secret(token="")])
def test_a_secret_without_any_of_it_says_so(body: dict[str, dict[str, str]]) -> None:
    assert login_of("ns/s", body).error.startswith("Secret ns/s has neither")


@pytest.mark.parametrize("text", ["%%%", "/w=="])
def test_what_is_no_text_says_so(text: str) -> None:
    assert "cannot be read" in login_of("ns/s", {"data": {"token": text}}).error


def test_a_login_shows_no_secret() -> None:
    shown = repr(Login("SECRET", "u", "SECRET"))
    assert "SECRET" not in shown
