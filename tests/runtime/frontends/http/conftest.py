"""A client of the HTTP front end."""

from collections.abc import Iterator

import httpx
import pytest
from tests.runtime.frontends.conftest import Running


@pytest.fixture
def client(running: Running) -> Iterator[httpx.Client]:
    with httpx.Client(
        base_url=f"http://127.0.0.1:{running.http}", headers={"accept-encoding": "identity"}
    ) as http_client:
        yield http_client
