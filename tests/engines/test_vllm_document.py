"""The requests of the page about vLLM's backend are answered as it says."""

import json
import subprocess

import pytest
from tests.docs.blocks import ROOT, blocks

pytestmark = pytest.mark.timeout(1200)  # the first test installs the environment and starts the engine

PAGE = ROOT / "docs/how-to/vllm.md"
REQUESTS = [command for block in blocks(PAGE.read_text()) for command in block.commands if command.startswith("curl ")]


@pytest.mark.parametrize("command", REQUESTS, ids=range(len(REQUESTS)))
def test_a_request_is_answered(command, vllm_server):
    sent = command.replace("localhost:8000", vllm_server.http).replace("curl ", "curl --fail-with-body -sS ", 1)
    done = subprocess.run(["bash", "-c", sent], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    for line in done.stdout.removeprefix("data: ").split("\n\ndata: "):
        answer = json.loads(line)
        assert "choices" in answer or "text_output" in answer


def test_there_are_requests():
    assert len(REQUESTS) >= 3
