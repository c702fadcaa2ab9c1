"""Published models' shapes, and deployments of them."""

from functools import cache
from pathlib import Path
from typing import Any

from argosy.api.model.footprint import Traffic
from argosy.planning.topology.deployment import Deployment, Machine
from argosy.planning.topology.memory import Split
from argosy_agent.contract.builds import ModelShape
from argosy_agent.contract.modelshapes import parse_shape

GIB = 1 << 30
DGX = Machine(gpus=8, joined=8, usable=80 * GIB)
"""Eight GPUs of 80 GiB in one NVLink domain."""
PAIRS = Machine(gpus=4, joined=2, usable=80 * GIB)
"""Four GPUs of which NVLink joins two at a time."""


@cache
def shape(name: str) -> ModelShape:
    """Return a published model's shape, by the name of its file in tests/data/shapes."""
    result = parse_shape((Path(__file__).parents[3] / "data" / "shapes" / f"{name}.json").read_text())
    assert result is not None
    return result


def deployment(
    name: str, machine: Machine | None = DGX, traffic: tuple[int, int] | None = None, **split: Any
) -> Deployment:
    """Return a published model, split so. `traffic` is prompt and output tokens."""
    options = split.pop("options", {})
    requested = Traffic(prompt_tokens=traffic[0], output_tokens=traffic[1]) if traffic else None
    return Deployment(shape(name), Split(**{"length": 8192, **split}), machine, requested, options)
