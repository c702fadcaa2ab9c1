"""Access to the API server, as far as it needs none."""

import json
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest

from argosy_agent.sources.configmaps import _lines
from argosy_agent.sources.kubernetes_api import ApiServer, ApiServerError


class Answer(httpx.AsyncByteStream):
    """A watch's body, in parts as they may come."""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for part in ('{"n": "a\x85b\u2028c"}\n{"n"', ': "d"}', "\n"):
            yield part.encode()


async def test_an_event_ends_with_a_newline_and_nothing_else() -> None:
    lines = [line async for line in _lines(httpx.Response(200, stream=Answer()))]
    assert [json.loads(line)["n"] for line in lines] == ["a\x85b\u2028c", "d"]


def test_outside_of_a_pod_the_way_out_is_named(tmp_path: Path) -> None:
    with pytest.raises(ApiServerError, match="elsewhere use --desired and --state-file"):
        ApiServer.of_pod(tmp_path, {})
    api = ApiServer.of_pod(tmp_path, {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"})
    assert api.url == "https://[fd00::1]:443"
    with pytest.raises(ApiServerError, match="mount a projected service account token"):
        api.client()
    (tmp_path / "token").write_text("token")
    (tmp_path / "ca.crt").write_text("no certificate")
    with pytest.raises(ApiServerError, match=r"must hold `token` and `ca.crt`"):
        api.client()
