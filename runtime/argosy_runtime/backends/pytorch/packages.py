"""AOTInductor packages: their metadata, whether this machine can run one, and loading it without a compiler.

torch's own `aoti_load_package` distinguishes machines by compiling a probe, for which a server's image has no compiler.
"""

import json
import platform
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch.export.pt2_archive._package import AOTICompiledModel

from argosy_runtime.errors import unavailable

INPUT_NAMES = "ARGOSY_INPUT_NAMES"
"""The key of a package's metadata under which a build leaves the names of forward's arguments, as JSON."""
NAME = "model"
_loader: Any = torch._C._aoti.AOTIModelPackageLoader  # made in C++
_WIDTHS = {"DEFAULT": 0, "AVX2": 256, "AVX512": 512}
"""Bits of the vectors that a processor has, by torch's names of its capabilities."""


def is_package(path: Path) -> bool:
    """Return whether a file is an AOTInductor package, whatever it is called."""
    if not zipfile.is_zipfile(path):
        return False
    with zipfile.ZipFile(path) as archive:
        return any("/data/aotinductor/" in f"/{name}" for name in archive.namelist())


def metadata_of(path: Path) -> Mapping[str, str]:
    """Return the compiler's notes: AOTI_DEVICE_KEY, AOTI_MACHINE, AOTI_CPU_ISA …, and INPUT_NAMES.

    Raises RuntimeError.
    """
    metadata: Mapping[str, str] = _loader.load_metadata_from_package(str(path), NAME)
    return metadata


def loaded(path: Path, device_index: int) -> AOTICompiledModel:
    """Return the compiled model. Raises ServingError (UNAVAILABLE) where it is for another kind of machine."""
    _check_machine(path, metadata_of(path))
    return AOTICompiledModel(_loader(str(path), NAME, False, 1, device_index))


def input_names(package: AOTICompiledModel) -> list[str]:
    """Return the names of forward's arguments, in order; none where the package has none."""
    try:
        names = json.loads(package.get_metadata().get(INPUT_NAMES, "[]"))
    except ValueError:
        return []
    return [str(name) for name in names] if isinstance(names, list) else []


def _check_machine(path: Path, metadata: Mapping[str, str]) -> None:
    machine, required = platform.machine(), metadata.get("AOTI_MACHINE", "")
    if required not in ("", machine):
        raise unavailable(f"'{path}' was compiled for {required}, and this machine is {machine}; compile it here too")
    words = metadata.get("AOTI_CPU_ISA", "").split()
    width = max((_WIDTHS.get(word, 0) for word in words), default=0)
    here = torch.backends.cpu.get_cpu_capability()
    if width > _WIDTHS.get(here, 512):
        raise unavailable(
            f"'{path}' was compiled for processors with {words[0]}, and this one has {here}; compile it with "
            "cpp.simdlen 256"
        )
