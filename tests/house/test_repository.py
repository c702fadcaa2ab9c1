"""Files for contributors name what is there: make's targets, hooks, the release, generated files."""

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
MAKEFILE = (ROOT / "Makefile").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
RELEASE: dict[str, Any] = yaml.safe_load((ROOT / ".github/workflows/release.yml").read_text())
# Steps of others, which no person calls.
INTERNAL = {"setup", "programs", "suite", "pure"}


def targets() -> set[str]:
    phony = re.search(r"^\.PHONY: (.+)$", MAKEFILE, re.MULTILINE)
    assert phony
    return set(phony[1].split())


def test_make_help_lists_every_target() -> None:
    shown = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert set(re.findall(r"^make (\S+) ", shown, re.MULTILINE)) == targets() - INTERNAL
    assert "PYTHON" not in shown


def test_what_runs_compiled_and_on_its_sources_is_there() -> None:
    command = ["make", "--silent", "--eval=paths:; @echo $(COMPILED_PATH)", "paths"]
    shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    paths = [path.removeprefix("--ignore=") for path in shown]
    assert [path for path in paths if not path.startswith("tests/") or not (ROOT / path).exists()] == []
    assert len(paths) > 10


def test_make_alone_sets_up() -> None:
    assert re.findall(r"^([a-z-]+):", MAKEFILE, re.MULTILINE)[0] == "setup"


@pytest.mark.parametrize("page", ["README.md", "CONTRIBUTING.md", "docs/gpu.md", ".github/pull_request_template.md"])
def test_the_targets_that_a_page_names_are_there(page: str) -> None:
    named = set(re.findall(r"\bmake ([a-z][a-z-]+)", (ROOT / page).read_text()))
    assert named <= targets()


def test_the_files_that_contributing_calls_generated_are_there() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text()
    rows = [row.split("|")[1] for row in re.findall(r"^\| .*`.*$", text, re.MULTILINE)]
    paths = [path for row in rows for path in re.findall(r"`([^`]+)`", row)]
    assert len(paths) >= 5
    assert [path for path in paths if not list(ROOT.glob(path.rstrip("/")))] == []


def test_hooks_run_programs_of_the_environment_on_files_that_are_there() -> None:
    local, *_ = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    listing = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    tracked = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    for hook in local["hooks"]:
        program = hook["entry"].split()[0]
        assert program.startswith(".venv/bin/")
        assert program.removeprefix(".venv/bin/") in MAKEFILE
        assert "files" not in hook or any(re.search(hook["files"], path) for path in tracked), hook["id"]


def images() -> list[dict[str, str]]:
    matrix: list[dict[str, str]] = RELEASE["jobs"]["images"]["strategy"]["matrix"]["include"]
    return matrix


def test_the_release_builds_the_images_that_the_chart_names() -> None:
    values = yaml.safe_load((ROOT / "charts/argosy/values.yaml").read_text())["images"]
    assert {image["name"] for image in images()} == {
        values["operator"]["repository"],
        values["runtime"]["repository"],
    }
    assert all((ROOT / image["file"]).exists() for image in images())


@pytest.mark.parametrize("image", images(), ids=lambda image: image["name"] + image["suffix"])
def test_an_images_target_is_a_stage_of_its_dockerfile(image: dict[str, str]) -> None:
    stages = re.findall(r"^FROM \S+ AS (\S+)", (ROOT / image["file"]).read_text(), re.MULTILINE)
    assert image["target"] in ("", *stages)
    assert image["suffix"].removeprefix("-") in ("", image["target"])


def test_a_release_checks_that_versions_agree_as_they_do_now() -> None:
    step = next(step for step in RELEASE["jobs"]["check"]["steps"] if step.get("env", {}).get("TAG"))
    tag = "v" + PROJECT["project"]["version"]
    for name, code in ((tag, 0), ("v9.9.9", 1)):
        done = subprocess.run(["bash", "-e", "-c", step["run"]], cwd=ROOT, env={"TAG": name, "PATH": "/usr/bin:/bin"})
        assert done.returncode == code, name


def test_what_never_ran_is_reported_so() -> None:
    assert "Never run yet." in (ROOT / ".github/workflows/release.yml").read_text().partition("\nname:")[0]
    assert "It has never run." in (ROOT / "CONTRIBUTING.md").read_text()
