"""A command that does not work is noticed."""

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.docs.blocks import Block
from tests.docs.reader import Reader


@pytest.fixture
def reader(tmp_path: Path) -> Iterator[Reader]:
    reader = Reader(tmp_path)
    yield reader
    reader.leave()


@pytest.fixture
def address() -> Iterator[str]:
    """Yield the address of a web server that answers 404 at /nothing and 200 at any other path."""

    class Nothing(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(404 if self.path == "/nothing" else 200)

        def log_message(self, *args: object) -> None:
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Nothing)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_script_that_works(reader: Reader) -> None:
    assert reader.run(Block(1, "sh", "ls examples/assistant | grep pool\n")) == "pool.yaml\n"


@pytest.mark.parametrize("text", ["false\ntrue\n", "argosy plan -f nowhere\n", "no-such-command\n", "false | cat\n"])
def test_a_script_that_fails(reader: Reader, text: str) -> None:
    with pytest.raises(AssertionError, match="line 7 ended with"):
        reader.run(Block(7, "sh", text))


def test_curl_has_to_be_answered(reader: Reader, address: str) -> None:
    reader.run(Block(1, "sh", f"curl {address}/something\n"))
    with pytest.raises(AssertionError, match="404"):
        reader.run(Block(1, "sh", f"curl {address}/nothing\n"))


def test_a_server_that_ends_at_once(reader: Reader) -> None:
    with pytest.raises(AssertionError, match="no-such-flag"):
        reader.run(Block(1, "sh", "argosy up examples/assistant --no-such-flag\n"))
