"""What the two builders take is what the operator lets through, by name and by value."""

from collections.abc import Mapping

import pytest

from argosy.api.engine.options.aotinductor import AOTINDUCTOR
from argosy.api.engine.options.onnxruntime import EXTRA, ONNXRUNTIME
from argosy.api.engine.options.option import Kind
from argosy.api.engine.options.option import Option as Declared
from argosy_agent.contract.builds import BuildFailure
from argosy_builder.aotinductor import settings as aotinductor
from argosy_builder.contract import BuildError
from argosy_builder.onnxruntime import settings as onnxruntime
from argosy_builder.options import Option, read

KINDS = {
    Kind.FLAG: bool,
    Kind.CHOICE: str,
    Kind.WHOLE: int,
    Kind.NUMBER: float,
    Kind.LIST: list,
    Kind.MAP: dict,
}


@pytest.mark.parametrize(
    ("ours", "declared"),
    [(onnxruntime.OPTIONS, ONNXRUNTIME), (onnxruntime.EXTRA, EXTRA), (aotinductor.OPTIONS, AOTINDUCTOR)],
)
def test_both_tables_are_one(ours: Mapping[str, Option], declared: Mapping[str, Declared]) -> None:
    assert {name: (option.kind, option.choices) for name, option in ours.items()} == {
        name: (KINDS[option.kind], option.choices) for name, option in declared.items()
    }


TABLE = {
    "flag": Option(bool, False),
    "count": Option(int, 3, least=1),
    "share": Option(float),
    "word": Option(str, "a", ("a", "b")),
    "names": Option(list),
}


def test_what_is_not_set_has_its_default() -> None:
    assert read({"share": 1}, TABLE) == {"flag": False, "count": 3, "share": 1, "word": "a", "names": None}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"flg": True}, "engine.options.flg: unknown option; do you mean flag?"),
        ({"other": True}, "engine.options.other: unknown option; there are flag, count, share, word, names"),
        ({"flag": 1}, "engine.options.flag: expected true or false; found 1"),
        ({"count": True}, "engine.options.count: expected a whole number; found True"),
        ({"count": 0}, "engine.options.count: must be 1 or more; found 0"),
        ({"word": "c"}, "engine.options.word: 'c' is none of a, b"),
        ({"names": []}, "engine.options.names: expected a list of texts; found []"),
        ({"names": [3]}, "engine.options.names: expected a list of texts; found [3]"),
    ],
)
def test_what_is_wrong_is_said_by_path(options: dict[str, object], says: str) -> None:
    with pytest.raises(BuildError) as raised:
        read(options, TABLE)

    assert raised.value.failure is BuildFailure.INVALID_OPTIONS
    assert raised.value.message == says
