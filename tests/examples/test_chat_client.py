"""The example's client of OpenAI's API, where the server does not answer as it should."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.acceptance.running import free_ports
from tests.runtime.frontends.openai.conftest import serving
from tests.runtime.frontends.openai.engine import LanguagePlane

CHAT = Path(__file__).parents[2] / "examples/assistant/chat.py"


def chat(url: str, *arguments: str) -> tuple[int, str, str]:
    """Return the exit status of the client, and what it prints and reports."""
    command = [sys.executable, str(CHAT), f"--url={url}", *arguments, "What does len do?"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    return done.returncode, done.stdout, done.stderr


def test_without_a_server_it_names_the_address() -> None:
    url = f"http://127.0.0.1:{free_ports()[0]}/v1"
    assert chat(url) == (2, "", f"{url}: Connection error.\n")


@pytest.mark.parametrize(
    ("model", "breaks_after", "printed", "message"),
    [
        ("missing", None, "", "The model 'missing' does not exist"),
        ("talker", 3, "Grüß", "the engine died"),
    ],
)
def test_the_servers_error_is_what_it_says(model: str, breaks_after: int | None, printed: str, message: str) -> None:
    plane = LanguagePlane()
    plane.script.breaks_after = breaks_after
    with serving(plane) as served:
        status, text, reported = chat(served.url, f"--model={model}")
    assert (status, text) == (2, printed)
    assert reported.startswith(f"{served.url}: ")
    assert message in reported
    assert "Traceback" not in reported
