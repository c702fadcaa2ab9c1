"""`argosy plan -o svg`: the README's picture, and pictures of other plans."""

from pathlib import Path
from xml.etree import ElementTree

import pytest
import typer
from click.testing import Result
from typer.testing import CliRunner

from argosy.api.values.identity import PoolKey
from argosy.cli.planning.plan import plan
from argosy.cli.planning.plan_picture import plan_picture
from argosy.planning.facts import Gpu, Node, PoolFacts
from argosy.planning.plan import FleetPlan, Placement, PoolPlan, ServerPlan

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "llama-70b"
GIB = 1 << 30
POOL = PoolKey("default/small")


def run(folder: Path) -> Result:
    app = typer.Typer()
    app.command()(plan)
    return CliRunner().invoke(app, ["-f", str(folder), "--nodes", str(EXAMPLE / "nodes.yaml"), "-o", "svg"])


def texts(picture: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}text")]


def boxes(picture: str) -> list[dict[str, int]]:
    """Return the rectangles of a picture that are filled by a model."""
    result = ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}rect")
    filled = [box for box in result if box.get("fill") not in (None, "#fff")]
    return [{name: int(box.get(name, "0")) for name in ("x", "y", "width", "height")} for box in filled]


def picture_of(*placements: Placement, gpus: tuple[Gpu, ...]) -> str:
    node = Node("n", gpus, "<H100>")
    server = ServerPlan("small-0", "n", (0,) if placements[0].gpus else (), placements)
    used = len(server.gpus)
    pool = PoolPlan(POOL, (server,), (), len(gpus), used, len(placements))
    return plan_picture(FleetPlan((pool,)), [PoolFacts(POOL, (node,), ())])


def test_the_readme_has_the_picture_of_the_plan() -> None:
    result = run(EXAMPLE)
    assert result.exit_code == 0, result.output
    written = (ROOT / "docs" / "images" / "llama-70b.svg").read_text()
    assert result.stdout == written, "write docs/images/llama-70b.svg by argosy plan -o svg"
    assert "(docs/images/llama-70b.svg)" in (ROOT / "README.md").read_text()


def test_it_shows_what_is_used_and_what_is_free() -> None:
    shown = texts(run(EXAMPLE).stdout)
    assert shown[0] == "3 GPUs used; one model per GPU would take 6; lower bound 3"
    assert shown.count("llama-70b: 60 GiB") == 2
    assert {"embed x2: 8 GiB", "safety x2: 4 GiB", "compute 30 %", "12 GiB of 79.6 GiB"} <= set(shown)
    assert "CPU, server chat-0: tokenize x4, detokenize x4" in shown
    assert sum(text.endswith(": free") for text in shown) == 5


@pytest.mark.parametrize("count", [1, 8, 40])
def test_models_of_a_full_gpu_stay_inside_it(count: int) -> None:
    models = [Placement(f"m{i}", 1, f"m{i}", (0,), 1, 80 * GIB // count, 1000 // count) for i in range(count)]
    filled = boxes(picture_of(*models, gpus=(Gpu(0, 80 * GIB),)))
    assert len(filled) == count
    assert sum(box["height"] for box in filled) <= 120 + count
    assert len({box["x"] for box in filled}) == 1


def test_names_are_escaped_and_other_holders_named() -> None:
    shown = texts(
        picture_of(
            Placement("m", 1, "m", (0,), 1, GIB, 0, exclusive=True),
            gpus=(Gpu(0, 2 * GIB), Gpu(1, 2 * GIB, withheld_by="Pod team/train-0")),
        )
    )
    assert "n  <H100>" in shown
    assert "exclusive" in shown
    assert "GPU 1: Pod team/train-0" in shown


def test_a_node_without_gpus_shows_its_servers() -> None:
    cpu = Placement("m", 1, "m", (), 1, 0, 0)
    assert "CPU, server small-0: m" in texts(picture_of(cpu, gpus=(Gpu(0, GIB, is_cpu=True),)))


def test_what_is_unplaced_counts_and_is_exit_status_2(tmp_path: Path) -> None:
    for file in EXAMPLE.glob("*.yaml"):
        text = file.read_text().replace("memoryHeadroom: 20%", "memoryHeadroom: 30%")
        (tmp_path / file.name).write_text(text)
    result = run(tmp_path)
    assert result.exit_code == 2
    assert texts(result.stdout)[0].endswith("; 1 unplaced")
