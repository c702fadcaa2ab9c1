"""The retired words, and the places that still use them.

`python -m tests.house.words [PATH ...]` prints each place, with what to write there.
"""

import ast
import re
import sys
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

# What a name may not be made of, and what it is made of instead.
IN_NAMES = {
    "anew": "again",
    "around": "inputs, context",
    "asked": "requested",
    "beside": "next to, alongside",
    "copies": "instances, cached artifacts, replicas",
    "counted": "Counter, count",
    "each": "the noun: model, server, line",
    "elsewhere": "moved, other nodes",
    "exchange": "request context, IPC, swap",
    "form": "revision",
    "forms": "revisions",
    "found": "the noun: matches, errors, result",
    "gauged": "Gauge",
    "given": "the noun, provided",
    "kept": "retained, cached",
    "known": "the noun, registered",
    "ladder": "capacity options",
    "late": "overdue, the noun",
    "learnt": "estimated",
    "lenient": "the noun",
    "nobody": "none, unserved",
    "overdriven": "observed limit",
    "place": "slot, binding, location, placement",
    "places": "slots, bindings, locations, placements",
    "quiet": "idle",
    "recalled": "restored",
    "remembered": "restored, recorded",
    "room": "spare capacity, free memory, a slot",
    "said": "reported, message",
    "scene": "inputs",
    "situation": "inputs",
    "tell": "report",
    "told": "reported, message",
    "trouble": "error",
    "wanted": "desired",
    "whoever": "the noun",
    "whole": "full, ceil, the noun",
}
# What neither a docstring, a comment nor a page says.
IN_PROSE = {
    "anew": "again",
    "beside": "next to, alongside, in addition to",
    "nobody": "no client, nothing",
    "whoever": "the noun",
}
# Names of others, which are written as they write them: the error codes of gRPC, Triton and Kubernetes.
STANDARD = frozenset(
    (
        "NOT_FOUND",
        "not_found",
        "NotFoundError",
        "VLLMNotFoundError",
        "SLOW_AROUND_ENGINE",
        "in_place",
        "_in_place",
        "in_place_s",
        "change_in_place",
    )
)
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
# A flag such as `--beside` is a name, which stays until the flag does.
_PROSE = re.compile(rf"(?<!--)\b(?:{'|'.join(IN_PROSE)})\b", re.IGNORECASE)


@dataclass(frozen=True)
class Use:
    """A retired word in a file."""

    path: Path
    line: int
    text: str
    instead: str

    def __str__(self) -> str:
        return f"{self.path.relative_to(ROOT)}:{self.line}: {self.text} -> {self.instead}"


def uses(path: Path) -> list[Use]:
    """Return the retired words in the names and the prose of a Python file, or in the prose of any other."""
    if path.suffix == ".py":
        return [*_in_names(path), *_in_comments(path)]
    return [
        use for number, line in enumerate(path.read_text().splitlines(), 1) for use in _in_prose(path, number, line)
    ]


def _in_names(path: Path) -> Iterator[Use]:
    for part in _PARTS.findall(path.stem):
        if part.lower() in IN_NAMES:
            yield Use(path, 1, f"module {path.stem}", IN_NAMES[part.lower()])
    seen = set[str]()
    for node in ast.walk(ast.parse(path.read_text())):
        for name in _defined(node):
            for part in _PARTS.findall(name):
                if part.lower() in IN_NAMES and name not in seen and name not in STANDARD:
                    seen.add(name)
                    yield Use(path, getattr(node, "lineno", 1), name, IN_NAMES[part.lower()])
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            docstring = ast.get_docstring(node)
            if docstring:
                yield from _in_prose(path, getattr(node, "lineno", 1), docstring)


def _defined(node: ast.AST) -> list[str]:
    """Return the names that a node defines."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
            return [name]
        case ast.alias(asname=str(name)) | ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
            return [name]
    return []


def _in_comments(path: Path) -> Iterator[Use]:
    with tokenize.open(path) as file:
        for token in tokenize.generate_tokens(file.readline):
            if token.type == tokenize.COMMENT:
                yield from _in_prose(path, token.start[0], token.string)


def _in_prose(path: Path, line: int, text: str) -> Iterator[Use]:
    for word in _PROSE.findall(text):
        yield Use(path, line, f"{word!r} in {text.strip().splitlines()[0][:60]!r}", IN_PROSE[word.lower()])


def files(folder: Path) -> list[Path]:
    """Return the Python files, Markdown pages, templates and YAML files of a folder, or the file itself."""
    patterns = ("*.py", "*.md", "templates/*", "values.yaml")
    return [folder] if folder.is_file() else sorted({path for pattern in patterns for path in folder.rglob(pattern)})


if __name__ == "__main__":
    for argument in sys.argv[1:] or ["operator", "runtime", "docs"]:
        for file in files(Path(argument).resolve()):
            for use in uses(file):
                print(use)
