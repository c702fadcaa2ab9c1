"""`argosy plan -o svg`: the README's picture, and pictures of other plans."""

import re
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import typer
from click.testing import Result
from hypothesis import given
from hypothesis import strategies as st
from tests.properties import examples
from typer.testing import CliRunner

from argosy.api.values.identity import PoolKey
from argosy.cli.planning.picture.plan_picture import plan_picture
from argosy.cli.planning.plan import plan
from argosy.planning.consolidation.moves import Move, Step
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
    filled = [box for box in result if box.get("fill-opacity")]
    return [{name: int(box.get(name, "0")) for name in ("x", "y", "width", "height")} for box in filled]


def placed(name: str, memory: int, compute: int = 10, surge: int = 0) -> Placement:
    return Placement(name, 1, name, (0,), 1, memory, compute, surge=surge)


def picture_of(*placements: Placement, gpus: tuple[Gpu, ...], headroom: int = 0) -> str:
    node = Node("n", gpus, "<H100>")
    server = ServerPlan("small-0", "n", (0,) if placements[0].gpus else (), placements)
    used = len(server.gpus)
    pool = PoolPlan(POOL, (server,), (), len(gpus), used, len(placements))
    return plan_picture(FleetPlan((pool,)), [PoolFacts(POOL, (node,), (), headroom=headroom)])


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


@given(st.lists(st.integers(1, 40 * 1024), min_size=1, max_size=40))
@examples(50)
def test_blocks_are_as_high_as_their_share_and_never_overlap(sizes: list[int]) -> None:
    total = max(80 * GIB, sum(sizes) << 20)
    filled = boxes(picture_of(*(placed(f"m{i}", size << 20) for i, size in enumerate(sizes)), gpus=(Gpu(0, total),)))
    exact = sorted((160 * (size << 20) / total for size in sizes), reverse=True)
    large = [height for height in exact if round(height) >= 14]
    assert len(filled) == len(large) + (len(large) < len(sizes))
    for box, height in zip(filled, [*large, sum(exact[len(large) :])], strict=False):
        assert abs(box["height"] - max(1, height)) <= 1
    for lower, upper in pairwise(filled):
        assert upper["y"] + upper["height"] <= lower["y"] + 1


def test_what_is_too_small_for_a_label_is_gathered() -> None:
    models = (placed("large", 40 * GIB), *(placed(f"s{i}", 300 << 20) for i in range(7)))
    picture = picture_of(*models, gpus=(Gpu(0, 80 * GIB),))
    assert "+7 small: 2.1 GiB" in texts(picture)
    titles = [title.text or "" for title in ElementTree.fromstring(picture).iter(f"{SVG}title")]
    assert "; ".join(f"s{i}: 300 MiB" for i in range(7)) in titles
    assert "s0: 300 MiB" in texts(picture_of(*models[:2], gpus=(Gpu(0, 80 * GIB),)))


def test_a_long_name_is_shortened_and_keeps_its_amount() -> None:
    name = "a-model-with-an-extremely-long-name-that-does-not-fit-in-a-block"
    picture = picture_of(placed(name, 33 * GIB), gpus=(Gpu(0, 80 * GIB),))
    (label,) = [text for text in texts(picture) if text.startswith("a-model")]
    assert (len(label) * 7 <= 204, label.endswith("…: 33 GiB")) == (True, True)
    assert f"{name}: 33 GiB" in picture


def test_headroom_and_what_a_rollout_keeps_are_marked() -> None:
    picture = picture_of(placed("m", 40 * GIB, surge=10 * GIB), gpus=(Gpu(0, 80 * GIB),), headroom=200)
    assert {"headroom 16 GiB", "rollout of m: 10 GiB", "50 GiB of 80 GiB"} <= {*texts(picture)}


def test_a_model_without_a_footprint_shares_no_gpu() -> None:
    alone = Placement("m", 1, "m", (0,), 1, 0, 0, exclusive=True)
    (box,) = boxes(picture := picture_of(alone, gpus=(Gpu(0, 80 * GIB),), headroom=200))
    assert (box["height"], "m: the whole GPU" in texts(picture)) == (160, True)


def test_many_devices_of_a_node_are_in_rows() -> None:
    root = ElementTree.fromstring(picture_of(placed("m", GIB), gpus=tuple(Gpu(i, 80 * GIB) for i in range(20))))
    assert int(root.get("width", "0")) < 1800
    assert len({text.get("y") for text in root.iter(f"{SVG}text") if (text.text or "").endswith(": free")}) == 3


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
    moved = Change(POOL, "m", Location("small-0", "n", (0,), "GPU 0"), Location("small-1", "n", (1,), "GPU 1"))
    gone = Change(POOL, "m", Location("small-0", "other", (0,), "GPU 0"), Location("small-1", "n", (1,), "GPU 1"))
    picture = plan_picture(plan, [PoolFacts(POOL, (node,), ())], Difference(moved=(moved, gone)))
    (arrow,) = [path for path in ElementTree.fromstring(picture).iter(f"{SVG}path") if path.get("marker-end")]
    start, end = re.findall(r"(\d+) (\d+)", arrow.get("d", ""))[0::2]
    assert int(start[0]) < int(end[0])
    title = arrow.find(f"{SVG}title")
    assert title is not None
    assert title.text == "m moves"


def test_moves_between_the_same_gpus_are_one_arrow_that_says_how_many() -> None:
    node = Node("n", (Gpu(0, 80 * GIB), Gpu(1, 80 * GIB)), "H100")
    models = [Placement(f"m{at}", 1, f"m{at}", (1,), 1, 10 * GIB, 10) for at in range(3)]
    plan = FleetPlan((PoolPlan(POOL, (ServerPlan("small-1", "n", (1,), tuple(models)),), (), 2, 1, 1),))
    locations = Location("small-0", "n", (0,), "GPU 0"), Location("small-1", "n", (1,), "GPU 1")
    moved = tuple(Change(POOL, f"m{at}", *locations) for at in range(3))
    picture = plan_picture(plan, [PoolFacts(POOL, (node,), ())], Difference(moved=moved))
    arrows = [path for path in ElementTree.fromstring(picture).iter(f"{SVG}path") if path.get("marker-end")]
    assert (len(arrows), "3 moves" in texts(picture), "m0, m1, m2 moves" in picture) == (1, True, True)


def test_what_consolidation_would_move_is_an_arrow_and_a_line() -> None:
    node = Node("n", (Gpu(0, 80 * GIB), Gpu(1, 80 * GIB)), "H100")
    servers = tuple(
        ServerPlan(f"small-{at}", "n", (at,), (Placement(f"m{at}", 1, f"m{at}", (at,), 1, 10 * GIB, 10),))
        for at in range(2)
    )
    plan = FleetPlan((PoolPlan(POOL, servers, (), 2, 2, 2),))
    step = Step("small-0", "n", 1, (Move("m0", "small-0", "n", "small-7", "n", {"m0": (1,)}, 10 * GIB),), 1)
    picture = plan_picture(plan, [PoolFacts(POOL, (node,), ())], moves={POOL: (step,)})
    arrows = [path for path in ElementTree.fromstring(picture).iter(f"{SVG}path") if path.get("marker-end")]
    assert [path.get("marker-end") for path in arrows] == ["url(#head-moves)"]
    assert "m0 from small-0 on node n to small-7 on node n (10 GiB)" in texts(picture)
    assert any("1 GPU would come free" in text for text in texts(picture))


def test_an_arrow_starts_at_the_block_of_its_model() -> None:
    node = Node("n", (Gpu(0, 80 * GIB), Gpu(1, 80 * GIB)), "H100")
    models = [Placement(name, 1, name, (0,), 1, size * GIB, 10) for name, size in (("large", 50), ("low", 20))]
    servers = (
        ServerPlan("small-0", "n", (0,), tuple(models)),
        ServerPlan("small-1", "n", (1,), (Placement("other", 1, "other", (1,), 1, 10 * GIB, 10),)),
    )
    plan = FleetPlan((PoolPlan(POOL, servers, (), 2, 2, 3),))
    step = Step("small-0", "n", 1, (Move("low", "small-0", "n", "small-1", "n", {"low": (1,)}, 20 * GIB),), 1)
    picture = plan_picture(plan, [PoolFacts(POOL, (node,), ())], moves={POOL: (step,)})
    (arrow,) = [path for path in ElementTree.fromstring(picture).iter(f"{SVG}path") if path.get("marker-end")]
    x, y = map(int, re.findall(r"(\d+) (\d+)", arrow.get("d", ""))[0])
    (block,) = [box for box in boxes(picture) if box["height"] == 40]
    assert (x, y) == (block["x"] + block["width"] // 2, block["y"] + block["height"] // 2)


def test_the_bar_of_compute_is_as_long_as_the_share_that_is_taken() -> None:
    picture = picture_of(Placement("m", 1, "m", (0,), 1, 40 * GIB, 500), gpus=(Gpu(0, 80 * GIB),))
    bars = [box for box in ElementTree.fromstring(picture).iter(f"{SVG}rect") if box.get("class") == "used"]
    assert [bar.get("width") for bar in bars] == ["102"]


def test_every_line_of_text_is_inside_the_picture(tmp_path: Path) -> None:
    for file in EXAMPLE.glob("*.yaml"):
        text = file.read_text().replace("memoryHeadroom: 20%", "memoryHeadroom: 30%")
        (tmp_path / file.name).write_text(text)
    for picture in (run(tmp_path).stdout, run(EXAMPLE, "--without-node", "h100-a").stdout):
        root = ElementTree.fromstring(picture)
        lowest = max(int(element.get("y", "0")) for element in root.iter(f"{SVG}text"))
        assert lowest < int(root.get("height", "0"))
