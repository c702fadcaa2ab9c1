"""The format of a PyTorch model in a folder: an exported program, or Python source. Imports no torch."""

import zipfile
from pathlib import Path

from argosy_agent.contract.builds import BuildFailure
from argosy_builder.contract import BuildError

FIELD = "spec.storageUri"
PACKAGE = "model.pt2"


def output_name(filename: str) -> str:
    """Return the file name of the package, which the server expects."""
    return filename if filename.endswith((".pt", ".pt2")) else PACKAGE


def model_file(folder: Path, filename: str = "") -> Path:
    """Return the model of a folder: called `filename`, else the only .pt2, else the only .py there.

    Raises BuildError: MODEL_INVALID, UNSUPPORTED_MODEL for TorchScript.
    """
    if filename and (folder / filename).is_file():
        return folder / filename
    for suffix in (".pt2", ".py", ".pt"):
        paths = sorted(folder.glob(f"*{suffix}"))
        named = [path for path in paths if path.name == f"model{suffix}"]
        if len(named or paths) == 1:
            return (named or paths)[0]
    there = ", ".join(sorted(path.name for path in folder.iterdir())[:5]) or "nothing"
    raise BuildError(
        BuildFailure.MODEL_INVALID,
        f"{FIELD}: must hold one .pt2 of torch.export.save, or one Python file with a module, and holds {there}",
    )


def check_format(path: Path) -> None:
    """Raise BuildError where a file is cut off, TorchScript, or compiled already."""
    if path.suffix == ".py":
        return
    if not zipfile.is_zipfile(path):
        raise BuildError(BuildFailure.MODEL_INVALID, f"{FIELD}: {path.name} is cut off, or no PyTorch archive")
    with zipfile.ZipFile(path) as archive:
        names = [f"/{name}" for name in archive.namelist()]
    if any("/data/aotinductor/" in name for name in names):
        raise _unsupported(path, "is a compiled package already; serve it as it is, or give the exported program")
    if any(name.endswith("/constants.pkl") for name in names):
        raise _unsupported(
            path,
            "is TorchScript, which torch.export does not take: export the module itself (torch.export.save), or give "
            "its Python file",
        )


def _unsupported(path: Path, message: str) -> BuildError:
    return BuildError(BuildFailure.UNSUPPORTED_MODEL, f"{FIELD}: {path.name} {message}")
