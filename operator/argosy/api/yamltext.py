"""Parses YAML into plain documents: repeated keys are errors, dates stay text, and errors have their lines."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

import yaml


@dataclass(frozen=True, slots=True)
class YamlTextError(Exception):
    """An error in a text, with its line, from 1."""

    line: int
    message: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.message}"


@dataclass(frozen=True, slots=True)
class Document:
    """A YAML document: its value, and errors about repeated keys."""

    value: Any
    repeated: tuple[YamlTextError, ...] = ()


class _Loader(yaml.SafeLoader):
    """Loads plain values as JSON has them: keys become text, and timestamps stay text."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.repeated: list[YamlTextError] = []

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        self._note_repeated(node)
        self.flatten_mapping(node)
        mapping: dict[Hashable, Any] = {}
        for key_node, value_node in node.value:
            key = _key(self.construct_object(key_node, deep=True))
            mapping[key] = self.construct_object(value_node, deep=True)
        return mapping

    def construct_yaml_int(self, node: yaml.ScalarNode) -> int:
        """Return the integer. Raises ValueError if it has more digits than Python prints, in whatever base it is."""
        value: int = super().construct_yaml_int(node)
        str(value)
        return value

    def _note_repeated(self, node: yaml.MappingNode) -> None:
        """Record keys that occur twice. Keys of a merge (`<<`) may occur again."""
        seen: set[str] = set()
        for key_node, _ in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key = _key(self.construct_object(key_node, deep=True))
            if key in seen:
                line = key_node.start_mark.line + 1
                self.repeated.append(YamlTextError(line, f"key {key!r} is given twice; keep one"))
            seen.add(key)


def _key(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) else str(value)


_Loader.add_constructor("tag:yaml.org,2002:int", _Loader.construct_yaml_int)
_Loader.yaml_implicit_resolvers = {
    letter: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for letter, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


def _has_more(loader: yaml.SafeLoader) -> bool:
    more: Any = loader.check_data  # the stubs leave it untyped
    return bool(more())


def read_documents(text: str) -> Iterator[Document]:
    """Yield each document that is not empty, in order. Raises YamlTextError."""
    try:
        yield from _documents(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        message = " ".join(part for part in (error.context, error.problem) if part)
        hint = "; indent with spaces" if "'\\t'" in message else ""
        raise YamlTextError(mark.line + 1 if mark else 1, f"not YAML: {message}{hint}") from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise YamlTextError(line, f"not YAML: character {error.character!r} may not stand in it") from None
    except RecursionError:
        raise YamlTextError(1, "not YAML: it is nested too deeply") from None


def _documents(text: str) -> Iterator[Document]:
    loader = _Loader(text)
    try:
        while _has_more(loader):
            loader.repeated.clear()
            value = loader.get_data()
            if value is not None:
                yield Document(value, tuple(loader.repeated))
    except ValueError as error:  # a scalar that is not of the type it looks like
        raise YamlTextError(loader.line + 1, f"not YAML: {error}") from None
    except (ArithmeticError, AttributeError, LookupError, TypeError):  # nor of the type of its tag, as `!!bool x`
        raise YamlTextError(loader.line + 1, "not YAML: a scalar is not of the type that its tag names") from None
    finally:
        loader.dispose()
