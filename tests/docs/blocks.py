"""The fenced code blocks of a Markdown document, and which of them a test runs.

What is written after the fence decides:

- `sh`: commands. All of a document's are run, in its order, from one folder that holds a copy of `examples/`; each
  block is one bash script and has to exit 0, and a curl in it has to be answered with a status below 400.
- `sh`, with `argosy up` or `argosy serve` as the block's only command: it is started and, once it is ready, left
  running for the blocks that follow. It is ended, as by Ctrl-C, before the next such block or after the last one.
- `console`: commands that no test runs. Each one must match one of EXCUSES, which says why.
- anything else, or nothing: text, such as a diagram, an output or a file. Text that begins as a command is a mistake.
"""

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PATTERNS = ("README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/**/*.md", "examples/*/README.md")
DOCUMENTS = sorted(path for pattern in PATTERNS for path in ROOT.glob(pattern))

EXCUSES = {
    r"make (run|test|check|setup)\b": "sets up an environment (test_make_run.py runs what follows in `make run`)",
    r"make (gpu|bench-gpu)\b": "needs a GPU",
    r"argosy engines (install|uninstall) ": "downloads gigabytes: the fixture vllm_environment does the same",
    r"python3\.12 -m venv ": "changes folders of the machine",
    r"(\S*python3? -m )?pip install ": "changes the environment the tests run in",
    r"git clone ": "needs a network",
    r"kubectl ": "needs a cluster: e2e/test_documents.py runs those of the pages about Kubernetes on one",
    r"curl localhost:8000/v2/models/minilm/": "needs a cluster: tests/examples/test_cluster_example.py sends it",
    r"helm install ": "needs a cluster: e2e/ installs the chart by Helm's own code",
    r"docker build ": "e2e/ builds the same files, by buildah",
    r"python -m e2e\.cluster": "needs root and a minute; tests/cluster_tools run it",
    r"python examples/assistant/train_\w+\.py": "trains a model for minutes, and overwrites it",
    r"curl localhost:8000/(v1/|v2/models/llm/)": "needs an engine: tests/engines/test_vllm_document.py sends it",
    r"python examples/rag/build_index\.py": "takes minutes, and overwrites the index: tests/examples builds a new one",
    r"pytest|python -m tests\.": "tests, which are run as such",
    r"argosy bench \w+=http": "needs two endpoints: tests/operator/bench sends such a load to servers of its own",
    r"argosy advise ": "needs results of a run: tests/operator/bench/variants/test_advise.py makes some, and runs it",
    r"argosy (up \S+ --bundles|replay) ": "a bundle's name has its time: tests/operator/cli/test_replay.py has some",
    r"argosy up examples/rollout$|python examples/rollout/drive": "takes half a minute: tests/examples/test_rollout.py",
    r"argosy plan --cluster": "needs a cluster: tests/operator/cluster/test_plan_cluster.py reads one",
    r"argosy profile \S+ --job": "needs a cluster with GPUs: tests/operator/cli/test_profile_job.py plays one",
    r"argosy rollout \w+ ": "needs a rollout under way: tests/operator/cli/rollout has some, and runs the commands",
    r"argosy serve .*[=\s][A-Z]+\b": "a placeholder stands for the reader's own repository",
}
_COMMANDS = ("argosy", "curl", "python", "make", "pip", "kubectl", "git", "docker", "helm")
_FENCE = re.compile(r"^( *)(`{3,}|~{3,})[ ]*([^\s`]*)[^`]*$")
_LONG_RUNNING = re.compile(r"argosy (up|serve)\b(?!.*\s--(once|help)\b)")


@dataclass(frozen=True)
class Block:
    """A fenced block: the number of its first line, the word after the fence, and what stands between the fences."""

    line: int
    label: str
    text: str

    @property
    def commands(self) -> list[str]:
        """Its lines without comments and empty ones, continued lines joined."""
        joined = re.sub(r"\\\n\s*", "", self.text)
        bare = (re.sub(r"\s+#\s.*$", "", line).strip() for line in joined.splitlines())
        return [line for line in bare if line and not line.startswith("#")]

    @property
    def is_run(self) -> bool:
        """Whether a test runs it."""
        return self.label == "sh"

    @property
    def goes_on(self) -> bool:
        """Whether it is a server to start rather than a script to end."""
        return len(self.commands) == 1 and _LONG_RUNNING.match(self.commands[0]) is not None


def blocks(text: str) -> list[Block]:
    """Return the fenced blocks of a document, in its order. Raises ValueError where one is not closed."""
    fenced: list[Block] = []
    fence: re.Match[str] | None = None
    lines: list[str] = []
    start = 0
    for number, line in enumerate(text.splitlines(), 1):
        if fence is None:
            fence, lines, start = _FENCE.match(line), [], number
        elif line.strip() == fence[2]:
            fenced.append(Block(start, fence[3], "\n".join(line.removeprefix(fence[1]) for line in lines) + "\n"))
            fence = None
        else:
            lines.append(line)
    if fence is not None:
        raise ValueError(f"the block that begins at line {start} is not closed")
    return fenced


def mistakes(block: Block) -> list[str]:
    """Return the errors in a block's label."""
    if block.label == "console":
        unexcused = [command for command in block.commands if not any(re.match(excuse, command) for excuse in EXCUSES)]
        return [
            f"line {block.line}: {command!r} is not run, and nothing says why: label it sh" for command in unexcused
        ]
    if block.is_run:
        hidden = [command for command in block.commands if _LONG_RUNNING.match(command) and not block.goes_on]
        return [f"line {block.line}: {command!r} goes on for ever and needs a block of its own" for command in hidden]
    if block.commands and block.commands[0].split()[0] in _COMMANDS:
        return [f"line {block.line}: {block.commands[0]!r} looks like a command: label it sh or console"]
    return []
