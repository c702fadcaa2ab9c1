"""Questions and answers from what any Python installation carries: its own documentation.

The language topics (`pydoc_data.topics`), the docstrings of the built-ins and of the standard library (read
with `ast`, so nothing is imported), and the small talk of `data/chat.csv`. To the harmless prompts of
`data/safety.csv`, which are about anything, the answer is that it only knows Python.
"""

import ast
import builtins
import csv
import inspect
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.machinery import PathFinder
from pathlib import Path
from pydoc_data.topics import topics

HERE = Path(__file__).parent
MAX_ANSWER_CHARACTERS = 150
UNKNOWN = "I only know Python's own documentation. Ask me about a statement, a function or a module."
UNKNOWN_PAIRS = 60
MODULES_WITH_FUNCTIONS = (
    "asyncio.tasks", "base64", "bisect", "collections", "contextlib", "copy", "csv", "dataclasses",
    "difflib", "fnmatch", "fractions", "functools", "glob", "gzip", "hashlib", "heapq", "inspect", "json",
    "os", "pathlib", "pickle", "posixpath", "pprint", "random", "re", "secrets", "shutil", "socket",
    "statistics", "string", "subprocess", "tempfile", "textwrap", "threading", "timeit", "tokenize",
    "typing", "unittest.mock", "urllib.parse", "uuid",
)  # fmt: skip
METHODS_OF = (str, bytes, list, tuple, dict, set, int, float)
# The typographic characters of the documentation, as ASCII.
PLAINER = (
    ("\u201c", '"'),
    ("\u201d", '"'),
    ("\u2019", "'"),
    ("\u2026", "..."),
    ("\u2014", "-"),
    ("--", "-"),
    ("`", ""),
)

Template = tuple[str, ...]
ASKING: Template = (
    "What is {}?",
    "Explain {}.",
    "Tell me about {}.",
    "What's {}?",
    "Can you explain {}?",
    "Please explain {}.",
    "Describe {}.",
    "Define {}.",
    "Could you tell me about {}?",
    "I would like to learn about {}.",
    "{}",
)
THING: Template = (
    *ASKING,
    "What does {} do?",
    "What does {} mean?",
    "How do I use {}?",
    "How do I use {} in Python?",
    "What is {} for?",
    "How does {} work?",
    "Could you tell me what {} does?",
)
TOPIC: Template = (*ASKING, "What are {}?", "How do {} work?")


@dataclass(frozen=True, slots=True)
class Pair:
    """One answer and every way its question is put."""

    questions: tuple[str, ...]
    answer: str


def plain_text(paragraph: str) -> str:
    """Return one line of ASCII without the mark-up of the documentation's sources."""
    flat = re.sub(r"\s+", " ", re.sub(r"\s<https?://[^>]*>", "", paragraph))
    for fancy, simple in PLAINER:
        flat = flat.replace(fancy, simple)
    flat = re.sub(r"(?<!\w)\*(\w[^*]*)\*", r"\1", flat)
    return re.sub(r" \(see section [^)]*\)", "", flat).encode("ascii", "ignore").decode().strip()


def first_sentences(text: str, limit: int = MAX_ANSWER_CHARACTERS) -> str:
    """Return the first paragraph of `text`, cut after the last full sentence within `limit` characters.

    A sentence that only announces what follows (it ends with a colon) is left out unless it is all there is.
    """
    flat = plain_text(re.split(r"\n\s*\n", text.strip())[0])
    sentences = re.split(r"(?<=[.!?:])\s+(?=[A-Z\"'(])", flat)
    summary = sentences[0]
    if len(summary) > limit:
        summary = summary[:limit].rpartition(" ")[0] + " ..."
    for sentence in sentences[1:]:
        if len(summary) + 1 + len(sentence) > limit or sentence.endswith(":"):
            break
        summary = f"{summary} {sentence}"
    summary = summary.rstrip(" :;,")
    return summary if summary.endswith((".", "!", "?")) else f"{summary}."


def ask(templates: Template, *names: str) -> tuple[str, ...]:
    """Return every template with every name."""
    return tuple(template.format(name) for name in names for template in templates)


def topic_pairs() -> Iterator[Pair]:
    """Yield the language reference: "What is the with statement?" → its first sentences."""
    for key, text in sorted(topics.items()):
        title, _, body = text.partition("\n")
        prose = [p for p in re.split(r"\n\s*\n", body) if is_prose(p)]
        if not prose:
            continue
        name = title.replace('"', "").strip()
        name = plain_text(f"{name[:1].lower()}{name[1:]}")
        names = (f"the {key} statement", f"`{key}`", key) if name == f"the {key} statement" else (name, key)
        templates = THING if name.endswith("statement") else TOPIC
        yield Pair(ask(templates, *names), first_sentences(prose[0]))


def is_prose(paragraph: str) -> bool:
    """Return whether a paragraph of a topic is text, and neither a heading, a grammar nor code."""
    return bool(re.match(r'[A-Z"\u201c]', paragraph)) and "===" not in paragraph and len(paragraph) > 40


def builtin_pairs() -> Iterator[Pair]:
    """Yield built-in functions, types and exceptions, and the methods of the common types."""
    for name, thing in sorted(vars(builtins).items()):
        doc = inspect.getdoc(thing)
        if doc and not name.startswith("_") and callable(thing):
            yield Pair(ask(THING, name, f"{name}()"), documented(doc))
    for owner in METHODS_OF:
        for name, method in sorted(vars(owner).items()):
            doc = inspect.getdoc(method)
            if doc and not name.startswith("_") and callable(method):
                path = f"{owner.__name__}.{name}"
                yield Pair(ask(THING, path, f"{path}()"), documented(doc))


def documented(doc: str) -> str:
    """Return the first sentences of a docstring, without the signature lines that built-ins begin with."""
    paragraphs = [p for p in re.split(r"\n\s*\n", doc) if not re.match(r"[\w.]+\(.*(\)|->.*)$", p, re.DOTALL)]
    return first_sentences(re.sub(r"^[\w.]+\(.*\)\s*-+>?\s*", "", (paragraphs or [doc])[0]))


def source_of(module: str) -> ast.Module | None:
    """Return the parsed source of a standard module without importing it; None for those written in C."""
    path: list[str] | None = None
    spec = None
    for part in module.split("."):
        spec = PathFinder.find_spec(part, path)
        path = list(spec.submodule_search_locations or []) if spec else None
    if spec is None or not spec.origin or not spec.origin.endswith(".py"):
        return None
    return ast.parse(Path(spec.origin).read_text(encoding="utf-8"))


def module_pairs() -> Iterator[Pair]:
    """Yield the standard library: its modules, and the functions and classes of those most asked about."""
    for module in sorted(sys.stdlib_module_names):
        tree = None if module.startswith("_") else source_of(module)
        doc = ast.get_docstring(tree) if tree else None
        if doc and len(doc) > 20:
            yield Pair(ask(THING, f"the {module} module", f"{module} module", module), first_sentences(doc))
    for module in MODULES_WITH_FUNCTIONS:
        public = {"asyncio.tasks": "asyncio", "posixpath": "os.path"}.get(module, module)
        tree = source_of(module)
        for node in tree.body if tree else ():
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and node.name[0] != "_":
                doc = ast.get_docstring(node)
                if doc:
                    yield Pair(ask(THING, f"{public}.{node.name}", f"{public}.{node.name}()"), first_sentences(doc))


def chat_pairs(path: Path = HERE / "data" / "chat.csv") -> Iterator[Pair]:
    """Yield small talk: rows of questions, separated by `|`, and an answer."""
    with path.open(newline="") as file:
        for row in csv.DictReader(file):
            yield Pair(tuple(row["questions"].split("|")), row["answer"])


def unknown_pairs(path: Path = HERE / "data" / "safety.csv") -> Iterator[Pair]:
    """Yield the answers to harmless prompts about anything else, a few prompts to a pair."""
    with path.open(newline="") as file:
        prompts = [row["prompt"] for row in csv.DictReader(file) if row["harmful"] == "0"]
    for start in range(UNKNOWN_PAIRS):
        yield Pair(tuple(prompts[start::UNKNOWN_PAIRS]), UNKNOWN)


def make_pairs() -> list[Pair]:
    """Return every pair, in a fixed order; each is also asked without capitals and punctuation.

    A question has one answer: the first that claims it.
    """
    claimed: set[str] = set()
    pairs = []
    for pair in (*chat_pairs(), *topic_pairs(), *builtin_pairs(), *module_pairs(), *unknown_pairs()):
        plain = [question.rstrip("?.") for question in pair.questions]
        lower = [question[:1].lower() + question[1:] for question in plain]
        fresh = tuple(q for q in dict.fromkeys((*pair.questions, *plain, *lower)) if q not in claimed)
        claimed.update(fresh)
        if fresh:
            pairs.append(Pair(fresh, pair.answer))
    return pairs
