import pytest

from argosy_runtime.repository.preparing import label_lines


@pytest.mark.parametrize(
    ("text", "labels"),
    [
        ("", []),
        ("cat", ["cat"]),
        ("cat\ndog\n", ["cat", "dog"]),
        ("cat\r\ndog\r\n", ["cat", "dog"]),
        ("cat\n\ndog", ["cat", "", "dog"]),
        ("a\u2028b\nc\x0cd\ne\x85f\ng\rh", ["a\u2028b", "c\x0cd", "e\x85f", "g\rh"]),
    ],
)
def test_labels_end_at_newlines_alone(text: str, labels: list[str]) -> None:
    assert label_lines(text) == labels
