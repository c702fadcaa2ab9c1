"""A tiny model with random weights, saved once for the tests of a file."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from tests.runtime.backends.language_model import (
    configuration,
    generated,
    make_greedy,
    pbtxt,
    save_model,
    save_tokenizer,
)

from argosy_runtime.backends import transformers as backend

Loader = Callable[..., Any]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("weights")
    save_model(folder)
    return folder


@pytest.fixture(scope="module")
def shared(
    tmp_path_factory: pytest.TempPathFactory, folder_in: Callable[[Path, str], Any], shared_host: Any, saved: Path
) -> Iterator[Loader]:
    """Yield a function that loads a model once per configuration, for tests that leave it as it was."""
    cached: dict[tuple[str, bool], Any] = {}

    def load(config: str = pbtxt(), tokenizer: bool = False) -> Any:
        if (config, tokenizer) not in cached:
            folder = folder_in(tmp_path_factory.mktemp("shared"), config)
            link(saved, folder.version_dir, tokenizer)
            cached[config, tokenizer] = backend.load(folder.spec(), shared_host)
        return cached[config, tokenizer]

    yield load
    for instance in cached.values():
        instance.close()


@pytest.fixture
def tied(model_folder: Callable[[str], Any], host: Any) -> Iterator[Any]:
    """Yield a model for which every token is equally likely."""
    folder = model_folder(pbtxt(random_seed="1"))
    model = transformers.LlamaForCausalLM(configuration())
    torch.nn.init.zeros_(model.lm_head.weight)
    model.save_pretrained(folder.version_dir)
    make_greedy(folder.version_dir)
    instance = backend.load(folder.spec(), host)
    yield instance
    instance.close()


@pytest.fixture
def own(model_folder: Callable[[str], Any], host: Any, saved: Path) -> Any:
    """Return a model of the test's own, which closes it."""
    folder = model_folder(pbtxt())
    link(saved, folder.version_dir)
    return backend.load(folder.spec(), host)


def link(saved: Path, folder: Path, tokenizer: bool = False) -> None:
    for file in saved.iterdir():
        (folder / file.name).symlink_to(file)
    if tokenizer:
        save_tokenizer(folder)


@pytest.fixture(scope="module")
def reference(saved: Path) -> Callable[..., list[int]]:
    """Return a function that generates greedily with the model itself."""
    model = transformers.LlamaForCausalLM.from_pretrained(saved)

    return lambda *prompt, new=4: generated(model, prompt, new)
