"""Secrets do not leave with a bundle, wherever they occur; all else stays as it is."""

import json

import pytest

from argosy.replay.secrets import REDACTED, without_secrets

SECRET = "hunter2-hunter2"


@pytest.mark.parametrize(
    ("document", "field"),
    [
        ({"url": f"https://user:{SECRET}@host/path"}, "url"),
        ({"storageUri": f"s3://b/a?X-Amz-Signature={SECRET}&x=1"}, "storageUri"),
        ({"args": [f"--openai-api-key={SECRET}"]}, "args.0"),
        ({"env": [{"name": "ANYTHING", "value": SECRET}]}, "env.0.value"),
        ({"parameters": {"hf_token": {"string_value": SECRET}}}, "parameters.hf_token.string_value"),
        ({"parameters": {"password": SECRET}}, "parameters.password"),
        ({"metadata": {"annotations": {"tool/last-applied": SECRET}}}, "metadata.annotations.tool/last-applied"),
    ],
)
def test_a_secret_is_taken_out_wherever_it_occurs(document: dict[str, object], field: str) -> None:
    seen = {"snapshot": document, "message": f"cannot log in by {SECRET}"}
    redacted = without_secrets(seen)
    assert redacted.fields == (f"snapshot.{field}",)
    assert SECRET not in json.dumps(redacted.document)
    assert redacted.document["message"] == f"cannot log in by {REDACTED}"


@pytest.mark.parametrize(
    "document",
    [
        {"secretName": "s3-login", "secretKey": "key"},
        {"slo": {"timeToFirstToken": {"p99": "1s"}}, "promptTokens": 100, "tokensPerSecond": 3},
        {"url": "http://host:9090/x?query=sum(rate(a[5m]))"},
        {"engines": [{"key": "0123abcd"}]},
        {"metadata": {"annotations": {"argosy.dev/pause": "true"}}},
        {"digest": "sha256:" + "0" * 64},
        {"env": [{"name": "KEY", "valueFrom": {"secretKeyRef": {"name": "s", "key": "password"}}}]},
    ],
)
def test_what_is_no_secret_stays(document: dict[str, object]) -> None:
    redacted = without_secrets(document)
    assert redacted.document == document
    assert redacted.fields == ()


def test_a_short_secret_is_replaced_in_its_own_field_alone() -> None:
    redacted = without_secrets({"password": "on", "message": "turned on"})
    assert redacted.document == {"password": REDACTED, "message": "turned on"}


def test_what_was_taken_out_stays_so() -> None:
    document = {"url": f"https://user:{SECRET}@host", "password": SECRET, "args": [f"--token={SECRET}"]}
    once = without_secrets(document).document
    assert without_secrets(once).document == once


@pytest.mark.parametrize(
    "text",
    [
        "https://ghp_abcdefgh12345678@host/x",
        "GET https://h/q?password=ghp_abcdefgh12345678&x=1 failed",
        "https://h/q?key=ghp_abcdefgh12345678",
        "sent Authorization: Bearer ghp_abcdefgh12345678",
    ],
)
def test_tokens_without_a_name_of_their_own_are_taken_out(text: str) -> None:
    assert "ghp_abcdefgh12345678" not in str(without_secrets({"message": text}).document)
