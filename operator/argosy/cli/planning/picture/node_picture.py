"""One node of a picture: its GPUs in rows, then what runs on its CPU."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from argosy.cli.planning.picture.gpu_picture import IDLE_HEIGHT, USED_HEIGHT, WIDTH, idle_gpu, model_points, used_gpu
from argosy.cli.planning.picture.svg import MARGIN, Point, box, fitted
from argosy.cli.planning.plan_table import model_label
from argosy.planning.facts import Device, Gpu, Node
from argosy.planning.packing.capacity import gpus_of
from argosy.planning.plan import PoolPlan, ServerPlan

# Lengths are in pixels.
GAP = 12
_HEADER, _CPU_HEIGHT = 26, 24
_IN_A_ROW = 8
ON_CPU = -1
"""What stands for a node's CPU among the indexes of its devices."""
Spot = tuple[str, int, str]
"""A node, the index of a device, and a model that is drawn there, empty for the device itself."""


@dataclass(frozen=True, slots=True)
class NodePicture:
    """A node with what one pool has on it. `holders`: what has other devices of the fleet. `headroom`: thousandths."""

    node: Node
    plan: PoolPlan
    holders: Mapping[Device, str]
    headroom: int
    colours: Mapping[str, str]

    @property
    def height(self) -> int:
        """The height of the node's frame."""
        on_cpu = sum(any(not placement.gpus for placement in server.placements) for server in self._servers)
        return _HEADER + sum(self._row_height(row) + GAP for row in self._rows) + on_cpu * _CPU_HEIGHT

    def elements(self, top: int, width: int) -> Iterator[str]:
        """Yield the node's frame, with its name and all that is in it."""
        yield box(MARGIN, top, width, self.height, "node")
        yield fitted(MARGIN + GAP, top + 18, width - 2 * GAP, f"{self.node.name}  {self.node.product}".rstrip())
        below = top + _HEADER
        for row in self._rows:
            for at, gpu in enumerate(row):
                yield from self._gpu(gpu, _left(at), below)
            below += self._row_height(row) + GAP
        for server in self._servers:
            models = [model_label(placement) for placement in server.placements if not placement.gpus]
            if models:
                yield fitted(
                    MARGIN + GAP, below + 14, width - 2 * GAP, f"CPU, server {server.name}: {', '.join(models)}"
                )
                below += _CPU_HEIGHT

    def points(self, top: int) -> Iterator[tuple[Spot, Point]]:
        """Yield the middle of each GPU, and of the node's name under the index `ON_CPU`, then that of each model."""
        name = self.node.name
        yield (name, ON_CPU, ""), (MARGIN + GAP + 20, top + _HEADER // 2)
        below = top + _HEADER
        for row in self._rows:
            for at, gpu in enumerate(row):
                server = self._server(gpu)
                middle = USED_HEIGHT * 2 // 3 if server is not None else IDLE_HEIGHT // 2
                yield (name, gpu.index, ""), (_left(at) + WIDTH // 2, below + middle)
                for model, point in model_points(gpu, server, _left(at), below) if server is not None else ():
                    yield (name, gpu.index, model), point
            below += self._row_height(row) + GAP
        for server in self._servers:
            models = [placement.model for placement in server.placements if not placement.gpus]
            yield from (((name, ON_CPU, model), (MARGIN + GAP + 20, below + 10)) for model in models)
            below += _CPU_HEIGHT if models else 0

    def _gpu(self, gpu: Gpu, left: int, top: int) -> Iterator[str]:
        server = self._server(gpu)
        if server is None:
            return idle_gpu(gpu, gpu.withheld_by or self.holders.get((self.node.name, gpu.index), ""), left, top)
        return used_gpu(gpu, server, self.headroom, self.colours, left, top)

    def _server(self, gpu: Gpu) -> ServerPlan | None:
        return next((server for server in self._servers if gpu.index in server.gpus), None)

    @property
    def _servers(self) -> Sequence[ServerPlan]:
        return [server for server in self.plan.servers if server.node == self.node.name]

    @property
    def _rows(self) -> list[list[Gpu]]:
        gpus = list(gpus_of(self.node))
        return [gpus[at : at + _IN_A_ROW] for at in range(0, len(gpus), _IN_A_ROW)]

    def _row_height(self, row: Sequence[Gpu]) -> int:
        return USED_HEIGHT if any(self._server(gpu) is not None for gpu in row) else IDLE_HEIGHT


def width_for(gpus: int) -> int:
    """Return the width of a picture whose nodes have at most so many GPUs."""
    return 2 * MARGIN + GAP + min(_IN_A_ROW, max(gpus, 3)) * (WIDTH + GAP)


def _left(at: int) -> int:
    return MARGIN + GAP + at * (WIDTH + GAP)
