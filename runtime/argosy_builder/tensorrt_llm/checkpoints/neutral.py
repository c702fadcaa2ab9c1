"""A folder whose name means nothing to TensorRT-LLM, which reads the kind of model and of data out of paths.

`"mpt" in path` is true of `attempt` and `prompt`; so the model and the data are shown under names of ours.
"""

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from argosy_agent.contract.builds import BuildFailure
from argosy_builder.contract import BuildError

TRAPS = (
    "mpt",
    "vila",
    "llava",
    "exaone",
    "hf",
    "cnn_dailymail",
    "scienceqa",
    "science_qa",
    "pileval",
    "lambada",
)
MEANT = {"ExaoneForCausalLM": "exaone", "LlavaLlamaModel": "llava", "MPTForCausalLM": "mpt", "MptForCausalLM": "mpt"}
"""Models whose name TensorRT-LLM must find in their path."""
WITH_CODE = ("config.json", "tokenizer_config.json")
"""The files that may name code to run."""
TRIES = 100


@contextmanager
def neutral_folder(parent: Path | None = None) -> Iterator[Path]:
    """Yield a new folder, which is removed in the end."""
    for _ in range(TRIES):
        with tempfile.TemporaryDirectory(prefix="build-", dir=parent) as name:
            if is_neutral(name):
                yield Path(name)
                return
            if not is_neutral(str(Path(name).parent)):
                raise BuildError(
                    BuildFailure.BUILD_FAILED,
                    f"$TMPDIR: {Path(name).parent} holds a word that TensorRT-LLM takes for a kind of model "
                    f"({', '.join(TRAPS)}); set another",
                )
    raise BuildError(BuildFailure.BUILD_FAILED, "no folder could be made whose name means nothing to TensorRT-LLM")


def is_neutral(path: str) -> bool:
    """Return whether no trap is in the path."""
    return not any(trap in path.lower() for trap in TRAPS)


def shown(model: Path, folder: Path, architecture: str) -> Path:
    """Return the model's files under a name that says no more than it should, and without the code that came with them.

    TensorRT-LLM and modelopt run a checkpoint's code unasked where its configuration names some (`auto_map`).
    """
    link = folder / MEANT.get(architecture, "model")
    link.mkdir()
    for path in sorted(model.iterdir()):
        if path.suffix == ".py":
            continue
        if path.name in WITH_CODE and path.is_file():
            (link / path.name).write_text(_without_code(path), encoding="utf-8")
        else:
            (link / path.name).symlink_to(path.resolve(), target_is_directory=path.is_dir())
    return link


def _without_code(path: Path) -> str:
    config = json.loads(path.read_text(encoding="utf-8"))
    return json.dumps({name: value for name, value in config.items() if name != "auto_map"}, indent=2)
