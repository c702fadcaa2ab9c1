"""`argosy up` shows where OpenAI's API has the models that it has, and what of its access has no effect here."""

import pytest
from rich.console import Console
from tests.operator.planning.declared import model, pool

from argosy.api.status import InferenceModelStatus
from argosy.local.manifests.this_machine import without_effect
from argosy.local.views.line_view import LineView
from argosy.local.views.rows import Row, rows
from argosy.local.views.table_view import TableView

LINE = "OpenAI's API: http://127.0.0.1:8000/v1, model Llama"


@pytest.fixture
def shown() -> list[Row]:
    """Return the rows of a language model, another model, and a language model that does not answer yet."""
    vllm = {"modelFormat": {"name": "vllm"}, "inputs": None, "outputs": None}
    models = [model("llm", modelName="Llama", **vllm), model("other"), model("silent", **vllm)]
    urls = {"llm": "http://127.0.0.1:8000/v2/models/Llama", "other": "http://127.0.0.1:8000/v2/models/other"}
    statuses = {item.identity: InferenceModelStatus(url=urls.get(item.name, "")) for item in models}
    return rows(models, statuses, {})


def test_language_models_that_answer_have_an_address(shown: list[Row]) -> None:
    assert {row.name: row.address for row in shown} == {"llm": LINE, "other": "", "silent": ""}


def test_lines_name_it_once(shown: list[Row]) -> None:
    console = Console(width=200, record=True)
    view = LineView(console)
    view.update(shown, [], {})
    view.update(shown, [], {})
    assert console.export_text().splitlines().count(f"InferenceModel llm: {LINE}") == 1


def test_it_stands_below_the_table(shown: list[Row]) -> None:
    console = Console(width=120, record=True, force_terminal=True)
    view = TableView(console)
    view.update(shown, [], {})
    view.close()
    assert LINE in console.export_text()


def test_api_keys_of_a_secret_are_reported_to_be_without_effect() -> None:
    (line,) = without_effect([pool(openai={"apiKeys": {"secretName": "keys"}})], 1)
    assert line == (
        "ServingPool default/p: spec.openai.apiKeys: there is no cluster to read it from; "
        "set --openai-api-keys-file in spec.runtime.args"
    )
