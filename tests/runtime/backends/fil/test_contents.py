"""What a file of trees says of itself, in whatever pieces it is read."""

import os
from pathlib import Path
from typing import Any

import pytest

from argosy_runtime.backends.fil import contents


def test_a_number_of_classes_is_read_across_pieces_of_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(contents, "PIECE", 100)
    file = tmp_path / "model.txt"
    for before in range(200):
        file.write_bytes(bytes(before) + b"num_class=1234567890\n" + bytes(150))
        assert contents.named_classes(file, "lightgbm") == 1234567890


def test_a_file_that_shrinks_while_it_is_read_is_read_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "model.txt"
    file.write_bytes(b"num_class=3\n" * 1000)
    opened = Path.open

    def shrinking(path: Path, mode: str) -> Any:
        reader = opened(path, mode)
        os.truncate(path, 0)
        return reader

    monkeypatch.setattr(Path, "open", shrinking)
    assert contents.named_classes(file, "lightgbm") == 0
