"""Reading back the requested settings from the package: a step in a process of its own, because it runs the package."""

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree as pytree

from argosy_agent.contract.builds import BuildFailure
from argosy_builder.contract import BuildError
from argosy_runtime.backends.pytorch import packages

from .exporting import PROGRAM, example, input_tensors, loaded


def check_package(package: str, exported: str, max_batch_size: int, autocast: str, device: str, simdlen: int) -> None:
    """Raise BuildError (ENGINE_DIFFERS) if the package's code lacks the requested precision or SIMD width, or if the
    form of its outputs differs from the program's.

    Both run a batch of one and the largest batch. Types and shapes are compared; the accuracy gate compares values.
    """
    path = Path(package)
    differences = [*_of_code(path, autocast, simdlen)]
    differences += _of_answers(path, Path(exported, PROGRAM), max_batch_size, device)
    if differences:
        raise BuildError(BuildFailure.ENGINE_DIFFERS, "; ".join(differences))


def _of_code(path: Path, autocast: str, simdlen: int) -> Iterator[str]:
    metadata = packages.metadata_of(path)
    if simdlen == 256 and "AVX512" in metadata.get("AOTI_CPU_ISA", ""):
        yield f"engine.options.cpp.simdlen: 256 was requested, and the code is for {metadata['AOTI_CPU_ISA']}"
    if autocast and autocast not in _sources(path):
        yield f"engine.precision: {autocast} was requested, and the code computes nothing in it; leave precision out"


def _sources(path: Path) -> str:
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if name.endswith(".cpp")]
        return "".join(archive.read(name).decode(errors="replace") for name in names)


def _of_answers(path: Path, program_file: Path, most: int, device: str) -> Iterator[str]:
    program = loaded(program_file)
    model, package = program.module(), packages.loaded(path, -1)
    values = input_tensors(program)
    spec = program.call_spec.in_spec
    assert spec is not None
    for batch in sorted({1, most}) if most else (None,):
        arguments = [example(value, batch) for value in values]
        args, kwargs = pytree.tree_unflatten(arguments, spec)
        there_args, there_kwargs = pytree.tree_unflatten([argument.to(device) for argument in arguments], spec)
        with torch.inference_mode():
            ours = _signature(model(*args, **kwargs))
            theirs = _signature(package(*there_args, **there_kwargs))
        if ours != theirs:
            yield f"for a batch of {batch} the package answers {theirs}, and the model {ours}"


def _signature(result: Any) -> list[tuple[str, tuple[int, ...]]]:
    return [(str(leaf.dtype), tuple(leaf.shape)) for leaf in pytree.tree_leaves(result)]
