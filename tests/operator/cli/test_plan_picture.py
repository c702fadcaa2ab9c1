"""`argosy plan -o svg`: the README's picture, and pictures of other plans."""

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest
import typer
from click.testing import Result
from typer.testing import CliRunner

from argosy.api.values.identity import PoolKey
from argosy.cli.planning.picture.plan_picture import plan_picture
from argosy.cli.planning.plan import plan
from argosy.planning.explanation.difference import Change, Difference, Location
from argosy.planning.facts import Gpu, Node, PoolFacts
from argosy.planning.plan import FleetPlan, Placement, PoolPlan, ServerPlan

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "llama-70b"
GIB = 1 << 30
POOL = PoolKey("default/small")
SVG = "{http://www.w3.org/2000/svg}"


def run(folder: Path, *more: str) -> Result:
    app = typer.Typer()
    app.command()(plan)
    return CliRunner().invoke(app, ["-f", str(folder), "--nodes", str(EXAMPLE / "nodes.yaml"), "-o", "svg", *more])


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


def test_what_fits_nowhere_is_listed_with_what_would_make_it_fit(tmp_path: Path) -> None:
    for file in EXAMPLE.glob("*.yaml"):
        text = file.read_text().replace("memoryHeadroom: 20%", "memoryHeadroom: 30%")
        (tmp_path / file.name).write_text(text)
    shown = " ".join(texts(run(tmp_path).stdout))
    assert "chat-70b fits nowhere (GpuTooSmall)" in shown
    assert "it would fit with: memoryHeadroom 30 % → 24 %" in shown


def test_what_a_tried_change_would_change_is_listed() -> None:
    shown = texts(run(EXAMPLE, "--without-node", "h100-a").stdout)
    assert "What changes: 3 GPUs needed before, 3 after (+0)." in shown
    assert any(text.strip().startswith("embed moves from GPU 2 of node h100-a (server chat-0)") for text in shown)


def test_moves_are_arrows_from_one_gpu_to_the_other() -> None:
    node = Node("n", (Gpu(0, 80 * GIB), Gpu(1, 80 * GIB)), "H100")
    server = ServerPlan("small-1", "n", (1,), (Placement("m", 1, "m", (1,), 1, 40 * GIB, 500),))
    plan = FleetPlan((PoolPlan(POOL, (server,), (), 2, 1, 1),))
    moved = Change(POOL, "m", Location("small-0", "n", (0,)), Location("small-1", "n", (1,)))
    gone = Change(POOL, "m", Location("small-0", "other", (0,)), Location("small-1", "n", (1,)))
    picture = plan_picture(plan, [PoolFacts(POOL, (node,), ())], Difference(moved=(moved, gone)))
    (arrow,) = [path for path in ElementTree.fromstring(picture).iter(f"{SVG}path") if path.get("marker-end")]
    start, end = re.findall(r"(\d+) (\d+)", arrow.get("d", ""))[0::2]
    assert int(start[0]) < int(end[0])
    title = arrow.find(f"{SVG}title")
    assert title is not None
    assert title.text == "m moves"


def test_the_bar_of_compute_is_as_long_as_the_share_that_is_taken() -> None:
    picture = picture_of(Placement("m", 1, "m", (0,), 1, 40 * GIB, 500), gpus=(Gpu(0, 80 * GIB),))
    bars = [box for box in ElementTree.fromstring(picture).iter(f"{SVG}rect") if box.get("class") == "used"]
    assert [bar.get("width") for bar in bars] == ["85"]


def test_every_line_of_text_is_inside_the_picture(tmp_path: Path) -> None:
    for file in EXAMPLE.glob("*.yaml"):
        text = file.read_text().replace("memoryHeadroom: 20%", "memoryHeadroom: 30%")
        (tmp_path / file.name).write_text(text)
    for picture in (run(tmp_path).stdout, run(EXAMPLE, "--without-node", "h100-a").stdout):
        root = ElementTree.fromstring(picture)
        lowest = max(int(element.get("y", "0")) for element in root.iter(f"{SVG}text"))
        assert lowest < int(root.get("height", "0"))
