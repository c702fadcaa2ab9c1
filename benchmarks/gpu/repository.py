"""The two repositories: the model as Argosy's torch backend serves it, and as Triton's Python backend does."""

import json
import shutil
import sysconfig
from dataclasses import asdict, dataclass
from pathlib import Path

NAME = "bert"
_HERE = Path(__file__).parent
_TENSORS = """
name: "{name}" max_batch_size: {batch}
input [ {{ name: "ids" data_type: TYPE_INT64 dims: [ {sequence} ] }} ]
output [ {{ name: "vector" data_type: TYPE_FP32 dims: [ {hidden} ] }} ]
dynamic_batching {{ }}
"""
_ARGOSY = """backend: "pytorch" runtime: "model.py"
instance_group [ {{ kind: {kind} count: {instances} }} ]
optimization {{ cuda {{ graphs: {graphs} }} }}
"""
_TRITON = """backend: "python"
instance_group [ {{ kind: KIND_CPU count: {instances} }} ]
parameters {{ key: "DEVICE" value {{ string_value: "{device}" }} }}
parameters {{ key: "PACKAGES" value {{ string_value: "{packages}" }} }}
"""


@dataclass(frozen=True)
class Shape:
    """The encoder's. `half` computes in FP16."""

    layers: int
    hidden: int
    heads: int
    sequence: int
    vocabulary: int
    half: bool


BASE = Shape(layers=12, hidden=768, heads=12, sequence=128, vocabulary=30522, half=True)
"""BERT-base."""
SMALL = Shape(layers=2, hidden=64, heads=2, sequence=16, vocabulary=1000, half=False)
"""What a CPU answers at once: it shows that the benchmark runs, and nothing else."""


@dataclass(frozen=True)
class Setup:
    """What is served: the shape, on `device` (cuda or cpu), by so many instances, in batches of `batch` rows."""

    shape: Shape
    device: str
    batch: int
    instances: int
    graphs: bool


def for_argosy(folder: Path, setup: Setup) -> Path:
    """Write a repository in `folder` and return it."""
    kind = "KIND_GPU" if setup.device == "cuda" else "KIND_CPU"
    own = _ARGOSY.format(kind=kind, instances=setup.instances, graphs=str(setup.graphs).lower())
    version = _written(folder, setup, own)
    shutil.copy(_HERE / "bert.py", version / "model.py")
    return folder


def for_triton(folder: Path, setup: Setup) -> Path:
    """Write a repository in `folder` and return it."""
    packages = sysconfig.get_path("purelib")
    version = _written(folder, setup, _TRITON.format(instances=setup.instances, device=setup.device, packages=packages))
    shutil.copy(_HERE / "bert.py", version / "bert.py")
    shutil.copy(_HERE / "triton_model.py", version / "model.py")
    return folder


def _written(folder: Path, setup: Setup, own: str) -> Path:
    shape = setup.shape
    version = folder / NAME / "1"
    version.mkdir(parents=True)
    tensors = _TENSORS.format(name=NAME, batch=setup.batch, sequence=shape.sequence, hidden=shape.hidden)
    (folder / NAME / "config.pbtxt").write_text(tensors + own)
    (version / "shape.json").write_text(json.dumps(asdict(shape)))
    return version
