"""One GPU of a picture: its captions, and its memory as blocks in true proportions."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from argosy.cli.planning.picture.svg import Point, box, characters, fitted, named_box, text
from argosy.cli.planning.plan_table import model_label
from argosy.planning.amounts import gib, percent
from argosy.planning.facts import Gpu
from argosy.planning.nodes.device_names import named
from argosy.planning.packing.capacity import FULL_COMPUTE
from argosy.planning.plan import Placement, ServerPlan
from argosy_common.wording import shortened

# Lengths are in pixels.
WIDTH, IDLE_HEIGHT = 204, 24
_BAR, _CAPTION, _LINE, _COMPUTE_BAR = 160, 86, 14, 5
USED_HEIGHT = _CAPTION + _BAR
_LABELLED = 14
"""The least height of a block that has a label; what is smaller is gathered."""
_SMALL = "#8c959f"
_UNLIMITED = 10_000
"""A width in which every name has room."""


@dataclass(frozen=True, slots=True)
class _Block:
    """Memory of a GPU: of which models it is, and how much. `faint`: what is reserved, and not used."""

    name: str
    models: tuple[str, ...]
    size: int
    colour: str
    faint: bool = False
    amount: str = ""

    def label(self, width: int) -> str:
        """Return the name, shortened to a width, and the amount."""
        end = f": {self.amount or gib(self.size)}"
        return shortened(self.name, max(1, characters(width) - len(end))) + end


def idle_gpu(gpu: Gpu, holder: str, left: int, top: int) -> Iterator[str]:
    """Yield a GPU on which the pool has no server; `holder`: what has it, if anything does."""
    yield box(left, top + 4, WIDTH, IDLE_HEIGHT - 4, "free")
    yield fitted(left + 6, top + 18, WIDTH - 12, f"{named(gpu)}: {holder or 'free'}")


def used_gpu(
    gpu: Gpu, server: ServerPlan, headroom: int, colours: Mapping[str, str], left: int, top: int
) -> Iterator[str]:
    """Yield a GPU's captions, and its memory, filled from below. `headroom`: thousandths that stay free."""
    placements = [placement for placement in server.placements if gpu.index in placement.gpus]
    large, small = _ordered(placements, gpu, colours)
    gathered = _gathered(small)
    outside = gathered is not None and _height(gathered.size, gpu) < _LABELLED
    used = sum(placement.memory + placement.surge for placement in placements)
    captions = [f"{gib(used)} of {gib(gpu.memory)}", _compute(placements, gpu)]
    captions += [gathered.label(WIDTH)] if gathered is not None and outside else []
    yield fitted(left, top + 14, WIDTH, named(gpu))
    for at, caption in enumerate([f"server {server.name}", *captions], 1):
        yield fitted(left, top + 13 + at * _LINE, WIDTH, caption, "small")
    yield from _compute_bar(placements, gpu, left, top + _CAPTION - _COMPUTE_BAR - 2)
    yield from _memory_bar(gpu, headroom, placements, left, top + _CAPTION)
    every = [*large, *([gathered] if gathered is not None else [])]
    yield from _stack(every, [block.label(_UNLIMITED) for block in small], gpu, left, top + _CAPTION + _BAR)


def model_points(gpu: Gpu, server: ServerPlan, left: int, top: int) -> Iterator[tuple[str, Point]]:
    """Yield each model on a GPU with the middle of its block, or of that which gathers it."""
    placements = [placement for placement in server.placements if gpu.index in placement.gpus]
    large, small = _ordered(placements, gpu, {placement.model: "" for placement in placements})
    gathered, below = _gathered(small), 0
    for block in (*large, *([gathered] if gathered is not None else [])):
        middle = (_height(below, gpu) + _height(below + block.size, gpu)) // 2
        below += block.size
        yield from ((model, (left + WIDTH // 2, top + _CAPTION + _BAR - middle)) for model in block.models)


def _ordered(
    placements: Sequence[Placement], gpu: Gpu, colours: Mapping[str, str]
) -> tuple[list[_Block], list[_Block]]:
    """Return the blocks with a label of their own, from below, and those that are too small for one."""
    blocks = sorted(_blocks(placements, gpu, colours), key=lambda block: -block.size)
    large = [block for block in blocks if _height(block.size, gpu) >= _LABELLED]
    return large, [block for block in blocks if _height(block.size, gpu) < _LABELLED]


def _blocks(placements: Sequence[Placement], gpu: Gpu, colours: Mapping[str, str]) -> Iterator[_Block]:
    for placement in placements:
        colour, label = colours[placement.model], model_label(placement)
        if placement.exclusive and not placement.memory:
            yield _Block(label, (placement.model,), gpu.memory, colour, faint=True, amount="the whole GPU")
        else:
            yield _Block(label, (placement.model,), placement.memory, colour)
        if placement.surge:
            yield _Block(f"rollout of {placement.model}", (), placement.surge, colour, faint=True)


def _gathered(small: Sequence[_Block]) -> _Block | None:
    """Return one block for those that are too small for a label; None without any."""
    size = sum(block.size for block in small)
    if len(small) < 2:
        return next(iter(small), None)
    models = tuple(model for block in small for model in block.models)
    return _Block(f"+{len(small)} small", models, size, _SMALL)


def _stack(blocks: Sequence[_Block], small: Sequence[str], gpu: Gpu, left: int, bottom: int) -> Iterator[str]:
    """Yield the blocks one above the other. `small`: the names of those that the last one gathers."""
    below, labels = 0, list[str]()
    for at, block in enumerate(blocks):
        low, high = _height(below, gpu), _height(below + block.size, gpu)
        below += block.size
        several = at == len(blocks) - 1 and len(small) > 1
        words = "; ".join(small) if several else block.label(_UNLIMITED)
        frame = (left, bottom - high, WIDTH, max(1, high - low))
        yield named_box(frame, block.colour, words, faint=block.faint)
        if high - low >= _LABELLED:
            labels.append(text(left + 6, bottom - (low + high) // 2 + 4, block.label(WIDTH - 12), full=words))
    yield from labels


def _height(size: int, gpu: Gpu) -> int:
    return min(_BAR, round(_BAR * size / gpu.memory)) if gpu.memory else 0


def _memory_bar(gpu: Gpu, headroom: int, placements: Sequence[Placement], left: int, top: int) -> Iterator[str]:
    """Yield the frame of a GPU's memory, with what the pool keeps free, or nothing else may have."""
    yield box(left, top, WIDTH, _BAR, "gpu")
    reserved = gpu.memory - gpu.usable(headroom)
    rest = gpu.memory - sum(placement.memory for placement in placements)
    if any(placement.exclusive for placement in placements):
        yield from _hatched(left, top, _height(rest, gpu), "not shared" if rest < gpu.memory else "")
    elif reserved:
        yield from _hatched(left, top, _height(reserved, gpu), f"headroom {gib(reserved)}")


def _hatched(left: int, top: int, height: int, words: str) -> Iterator[str]:
    if height:
        yield box(left, top, WIDTH, height, "kept")
    if words and height >= _LABELLED:
        yield fitted(left + 6, top + 11, WIDTH - 12, words, "small")


def _compute(placements: Sequence[Placement], gpu: Gpu) -> str:
    if any(placement.exclusive for placement in placements):
        return "exclusive"
    of = f" of {percent(gpu.compute)}" if gpu.compute < FULL_COMPUTE else ""
    return f"compute {percent(sum(placement.compute for placement in placements))}{of}"


def _compute_bar(placements: Sequence[Placement], gpu: Gpu, left: int, top: int) -> Iterator[str]:
    """Yield a narrow bar, filled by the share of the device's compute that is taken."""
    full = any(placement.exclusive for placement in placements)
    used = gpu.compute if full else min(gpu.compute, sum(placement.compute for placement in placements))
    yield box(left, top, WIDTH, _COMPUTE_BAR, "free")
    if used:
        yield box(left, top, max(1, WIDTH * used // max(1, gpu.compute)), _COMPUTE_BAR, "used")
