"""The pages below docs/reference are those that `python -m docs.reference` writes."""

import pytest
import typer
from docs.reference import __main__ as reference
from docs.reference.resources import resource_pages

from argosy_agent.contract.engine_options.checks import TABLES


def test_the_pages_are_up_to_date(capsys: pytest.CaptureFixture[str]) -> None:
    reference.main(["--check"])
    assert "is up to date" in capsys.readouterr().out


def test_a_page_that_differs_is_noticed(tmp_path, monkeypatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(reference, "FOLDER", tmp_path)
    reference.main([])
    (tmp_path / "server-flags.md").write_text("# Flags\n")
    (tmp_path / "former.md").write_text("# Former\n")
    with pytest.raises(typer.Exit):
        reference.main(["--check"])
    shown = capsys.readouterr().out
    assert "+| `--http-port` | port | 8000 | 0 takes any free one |" in shown
    assert "former.md is generated from nothing" in shown


def test_an_unknown_argument_writes_nothing(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(reference, "FOLDER", tmp_path)
    with pytest.raises(SystemExit, match="--chek"):
        reference.main(["--chek"])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("page", "row"),
    [
        ("inferencemodel-spec.md", "| `footprint.gpus` | integer |"),
        ("inferencemodel-spec.md", "| `footprint.gpuMemory` | quantity |"),
        ("inferencemodel-spec.md", "| `poolRef.name` | string | **Required.** The pool's name. |"),
        ("inferencemodel-spec.md", "| `inputs[].dims` | list of integer | **Required.**"),
        ("ensemble-spec.md", "| `steps[].inputs` | map of string | **Required.**"),
        ("servingpool-spec.md", "| `runtime.name` | `argosy`, `triton` |"),
        ("inferencemodel-status.md", "| `conditions[].status` | `True`, `False`, `Unknown` |"),
    ],
)
def test_fields_have_their_path_type_and_need(page: str, row: str) -> None:
    assert row in resource_pages()[page]


def test_every_option_of_a_builder_has_a_row() -> None:
    text = reference.pages()["engine-options.md"]
    for builder, table in TABLES.items():
        section = text.partition(f"\n## `{builder}`\n")[2].partition("\n## ")[0]
        assert [name for name in table if f"\n| `{name}` |" not in section] == []
