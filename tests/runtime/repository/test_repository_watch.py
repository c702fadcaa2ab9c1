from dataclasses import replace
from pathlib import Path

from argosy_runtime.repository.folders.layout import ModelFolder
from argosy_runtime.repository.folders.repositories import Repositories
from argosy_runtime.repository.folders.watch import Changes, changes


def folder(name: str, fingerprint: str = "f") -> ModelFolder:
    return ModelFolder(name, Path("/models") / name, "", (1,), {1: ()}, fingerprint)


def scan(*folders: ModelFolder) -> dict[str, ModelFolder]:
    return {folder.name: folder for folder in folders}


def test_nothing_changed() -> None:
    result = changes(scan(folder("a")), scan(folder("a")))
    assert result == Changes()
    assert not result


def test_added_and_removed_are_sorted() -> None:
    result = changes(scan(folder("x"), folder("w")), scan(folder("b"), folder("a")))
    assert result == Changes(added=("a", "b"), removed=("w", "x"))
    assert result


def test_a_changed_fingerprint_is_a_change() -> None:
    before = scan(folder("a"), folder("b"), folder("c"))
    after = scan(folder("b", "f2"), folder("a", "f2"), folder("c"))
    assert changes(before, after) == Changes(modified=("a", "b"))


def test_a_model_that_moved_is_modified() -> None:
    moved = replace(folder("a"), path=Path("/other/a"))
    assert changes(scan(folder("a")), scan(moved)) == Changes(modified=("a",))


def test_a_problem_that_appears_is_a_change() -> None:
    broken = replace(folder("a"), problem="model appears in two or more repositories")
    assert changes(scan(folder("a")), scan(broken)).modified == ("a",)


def test_two_real_scans(tmp_path: Path) -> None:
    for name in ("kept", "gone", "edited"):
        (tmp_path / name / "1").mkdir(parents=True)
        (tmp_path / name / "config.pbtxt").write_text("max_batch_size: 1\n")
    before = Repositories([tmp_path]).scan()
    (tmp_path / "edited" / "config.pbtxt").write_text("max_batch_size: 12\n")
    (tmp_path / "gone").rename(tmp_path / "new")
    assert changes(before, Repositories([tmp_path]).scan()) == Changes(
        added=("new",), modified=("edited",), removed=("gone",)
    )
