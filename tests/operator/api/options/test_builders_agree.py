"""Each builder of the runtime takes the options that the API lets through, and no others."""

import importlib

import pytest

from argosy.api.engine.options.checks import TABLES
from argosy.api.engine.options.precisions import PRECISIONS, unsupported_here
from argosy.api.engine.options.tensorrt_llm import QFORMATS
from argosy_agent.contract.builds import BuildRequest, DataSource
from argosy_builder.contract import BuildError
from argosy_builder.tensorrt import settings as tensorrt
from argosy_builder.tensorrt_llm.asked import gpus, options, settings

TAKEN = {"tensorrt_llm": options.OPTIONS, "tensorrt_llm pytorch": options.PYTORCH_OPTIONS}


@pytest.mark.parametrize("table", TAKEN)
def test_tensorrt_llm_takes_the_options_of_its_table(table: str) -> None:
    assert TABLES[table].keys() == TAKEN[table]


def test_what_only_the_server_reads_is_the_same_on_both_sides() -> None:
    assert {name for name, option in TABLES["tensorrt_llm"].items() if option.serving} == options.SERVING


def test_formats_and_their_precisions_are_the_same_on_both_sides() -> None:
    for precision in PRECISIONS["tensorrt_llm"]:
        asked = settings.settings_of(a_request(precision=str(precision)))
        assert asked.qformat == QFORMATS[precision][0]
        assert asked.qformat in settings.ALGORITHMS


@pytest.mark.parametrize("builder", ["tensorrt", "onnxruntime", "aotinductor"])
def test_other_builders_take_the_options_of_their_tables(builder: str) -> None:
    taken = importlib.import_module(f"argosy_builder.{builder}.settings").OPTIONS
    assert TABLES[builder].keys() == taken.keys()


def test_tensorrt_takes_the_options_of_its_table() -> None:
    declared = TABLES["tensorrt"]
    assert declared.keys() == tensorrt.OPTIONS.keys()
    for name, option in tensorrt.OPTIONS.items():
        entries = declared[name].items
        choices = declared[name].choices or (entries.choices if entries else ())
        bounds = (declared[name].least, declared[name].most)
        assert tuple(choices) == option.choices or bounds == (option.choices[0], option.choices[-1])
    assert {*map(str, PRECISIONS["tensorrt"])} == {*tensorrt.PRECISIONS} - {""}


ARCHITECTURES = ("7.5", "8.0", "8.6", "8.9", "9.0", "10.0", "10.3", "11.0", "12.0", "12.1")


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("backend", ["tensorrt", "pytorch"])
def test_both_sides_know_the_same_of_gpus(architecture: str, backend: str) -> None:
    for precision in PRECISIONS["tensorrt_llm pytorch" if backend == "pytorch" else "tensorrt_llm"]:
        operators = unsupported_here("tensorrt_llm", precision, architecture, backend)
        builders = gpus.unsupported(str(precision), architecture, is_engine=backend == "tensorrt")
        assert bool(operators) == bool(builders), (precision, operators, builders)


def test_an_option_of_no_table_is_refused_by_the_builder_too() -> None:
    with pytest.raises(BuildError, match=r"spec\.engine\.options\.max_seqlen: tensorrt_llm has no such option"):
        settings.settings_of(a_request(options={"max_seqlen": 1}))


def a_request(**changes: object) -> BuildRequest:
    """Return a request for an engine, with these fields changed."""
    model = DataSource("file:///model")
    return BuildRequest("tensorrt_llm", "9.0", "image", "file:///engines", model, **changes)  # type: ignore[arg-type]
