import os
from collections.abc import Callable
from pathlib import Path

import pytest

from argosy_runtime.errors import ErrorKind, ServingError
from argosy_runtime.repository.folders import layout
from argosy_runtime.repository.folders.repositories import Repositories

CONFIG = 'backend: "python"\n'


def put(path: Path, text: str = "x") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def model(repository: Path, name: str = "m") -> Path:
    put(repository / name / "config.pbtxt", CONFIG)
    put(repository / name / "1" / "model.py", "pass")
    return repository / name


def test_a_model_is_read(tmp_path: Path) -> None:
    path = model(tmp_path)
    put(path / "1" / "weights" / "a.bin")
    folder = layout.scan(tmp_path)["m"]
    assert (folder.name, folder.path, folder.config_text) == ("m", path, CONFIG)
    assert (folder.versions, folder.files) == ((1,), {1: ("model.py", "weights/")})
    assert (folder.first_files, folder.version_path(1)) == (("model.py", "weights/"), path / "1")
    assert folder.problem is None


def test_versions_are_plain_numbers(tmp_path: Path) -> None:
    path = model(tmp_path)
    for name in ["0", "3", "10", "007", "abc", "-1", "1a", "²", "warmup", "initial_state", "configs", "9" * 30]:
        put(path / name / "model.py")
    put(path / "5", "a file is no version")
    assert layout.scan(tmp_path)["m"].versions == (0, 1, 3, 10)


def test_the_first_version_is_the_first_as_names_sort(tmp_path: Path) -> None:
    put(tmp_path / "m" / "9" / "model.onnx")
    put(tmp_path / "m" / "10" / "model.plan")
    assert layout.scan(tmp_path)["m"].first_files == ("model.plan",)


def test_hidden_entries_and_files_are_no_models(tmp_path: Path) -> None:
    model(tmp_path, "b")
    model(tmp_path, "a")
    model(tmp_path, ".git")
    put(tmp_path / "README.md")
    assert list(layout.scan(tmp_path)) == ["a", "b"]


def test_a_mounted_configmap_is_read_through_its_links(tmp_path: Path) -> None:
    real = tmp_path / "m" / "..2026_01_01"
    put(real / "config.pbtxt", CONFIG)
    (tmp_path / "m" / "..data").symlink_to(real, target_is_directory=True)
    (tmp_path / "m" / "config.pbtxt").symlink_to("..data/config.pbtxt")
    folder = layout.scan(tmp_path)["m"]
    assert (folder.config_text, folder.versions) == (CONFIG, ())


def test_a_model_without_a_configuration(tmp_path: Path) -> None:
    put(tmp_path / "m" / "1" / "model.onnx")
    folder = layout.scan(tmp_path)["m"]
    assert (folder.config_text, folder.config_path, folder.problem) == (None, None, None)


def test_an_empty_folder_is_a_model_with_no_versions(tmp_path: Path) -> None:
    (tmp_path / "m").mkdir()
    folder = layout.scan(tmp_path)["m"]
    assert (folder.versions, folder.first_files, folder.problem) == ((), (), None)


def test_another_configuration_by_name(tmp_path: Path) -> None:
    path = model(tmp_path)
    chosen = put(path / "configs" / "fast.pbtxt", "max_batch_size: 8\n")
    assert layout.scan(tmp_path, "fast")["m"].config_text == "max_batch_size: 8\n"
    assert layout.scan(tmp_path, "fast")["m"].config_path == chosen
    assert layout.scan(tmp_path, "other")["m"].config_text == CONFIG


def test_a_configuration_that_is_no_text_is_a_problem_of_its_model_alone(tmp_path: Path) -> None:
    model(tmp_path, "good")
    path = model(tmp_path, "bad") / "config.pbtxt"
    path.write_bytes(b"name: '\xff'")
    result = layout.scan(tmp_path)
    assert result["bad"].problem == f"failed to read text proto from {path}: byte 7 is not UTF-8"
    assert result["good"].problem is None


def test_a_configuration_that_is_a_folder_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "m" / "config.pbtxt").mkdir(parents=True)
    problem = layout.scan(tmp_path)["m"].problem
    assert problem is not None
    assert problem.startswith(f"failed to read text proto from {tmp_path}/m/config.pbtxt: ")


def test_a_model_that_vanishes_is_a_problem(tmp_path: Path) -> None:
    problem = layout.read_folder(tmp_path / "gone").problem
    assert problem == f"failed to open directory {tmp_path}/gone: No such file or directory"


def test_a_repository_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ServingError, match=r"failed to open directory .*/nowhere: No such file") as caught:
        layout.scan(tmp_path / "nowhere")
    assert caught.value.kind is ErrorKind.INTERNAL


def test_a_model_in_two_repositories_is_served_from_neither(tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    model(one, "both")
    model(two, "both")
    model(one, "b")
    model(two, "a")
    result = Repositories([one, two]).scan()
    assert list(result) == ["a", "b", "both"]
    assert result["both"].problem == "model appears in two or more repositories"
    assert result["both"].also_in == (two / "both",)
    assert result["a"].problem is None


def test_the_same_repository_named_twice_is_one(tmp_path: Path) -> None:
    model(tmp_path)
    assert Repositories([tmp_path, tmp_path]).scan()["m"].problem is None


def new_file(path: Path) -> None:
    put(path / "1" / "extra.bin")


def new_version(path: Path) -> None:
    (path / "2").mkdir()


def removed_file(path: Path) -> None:
    (path / "1" / "model.py").unlink()


def rewritten_file(path: Path) -> None:
    put(path / "1" / "model.py", "other")


def replaced_file(path: Path) -> None:
    """Replace a file by one of the same size and time: only the inode differs."""
    target = path / "1" / "model.py"
    status = target.stat()
    neighbour = put(path / "1" / "beside", "PASS")
    os.utime(neighbour, ns=(status.st_atime_ns, status.st_mtime_ns))
    neighbour.replace(target)


def older_file(path: Path) -> None:
    """Replace a file by an older one, as a restored file may be."""
    os.utime(path / "1" / "model.py", ns=(1, 1))


def warmup_data(path: Path) -> None:
    put(path / "warmup" / "data")


@pytest.mark.parametrize(
    "change",
    [new_file, new_version, removed_file, rewritten_file, replaced_file, older_file, warmup_data],
)
def test_a_change_changes_the_fingerprint(tmp_path: Path, change: Callable[[Path], None]) -> None:
    path = model(tmp_path)
    before = layout.read_folder(path)
    assert layout.read_folder(path).fingerprint == before.fingerprint
    change(path)
    after = layout.read_folder(path)
    assert after.fingerprint != before.fingerprint


@pytest.mark.parametrize(
    "name",
    [
        "1/__pycache__/model.cpython-311.pyc",
        "1/.model.py.swp",
        "1/model.py~",
        "1/#model.py#",
        "1/4913",
        "1/model.py.tmp",
        ".ipynb_checkpoints/x",
    ],
)
def test_what_editors_and_python_leave_behind_is_no_change(tmp_path: Path, name: str) -> None:
    path = model(tmp_path)
    before = layout.read_folder(path).fingerprint
    put(path / name)
    assert layout.read_folder(path).fingerprint == before


@pytest.mark.parametrize("name", ["config.pbtxt", "configs/fast.pbtxt"])
def test_a_configuration_is_no_content(tmp_path: Path, name: str) -> None:
    path = model(tmp_path)
    before = layout.read_folder(path)
    put(path / name, "max_batch_size: 16\n")
    after = layout.read_folder(path)
    assert after.fingerprint != before.fingerprint
    assert after.shared_fingerprint == before.shared_fingerprint
    assert after.version_fingerprints == before.version_fingerprints


def test_links_that_lead_in_circles_or_nowhere_are_survived(tmp_path: Path) -> None:
    path = model(tmp_path)
    (path / "1" / "up").symlink_to(path, target_is_directory=True)
    (path / "1" / "dangling").symlink_to(tmp_path / "nowhere")
    before = layout.read_folder(path)
    assert before.problem is None
    put(tmp_path / "nowhere", "appeared")
    assert layout.read_folder(path).fingerprint != before.fingerprint


def test_a_byte_order_mark_is_no_part_of_a_configuration(tmp_path: Path) -> None:
    folder = model(tmp_path)
    (folder / "config.pbtxt").write_bytes(b"\xef\xbb\xbf" + CONFIG.encode())
    assert layout.read_folder(folder).config_text == CONFIG
