"""Documents that are almost right: valid ones with members changed, left out, doubled or of another kind."""

import json
from copy import deepcopy
from typing import Any

from hypothesis import strategies as st

Json = Any

NUMBERS = st.one_of(
    st.integers(-3, 300),
    st.sampled_from([-(2**63) - 1, -(2**63), 2**31, 2**40, 2**63 - 1, 2**63, 2**64 - 1, 2**64, 10**400]),
    st.floats(),
)
SCALARS = st.one_of(
    st.none(), st.booleans(), NUMBERS, st.text(max_size=5), st.sampled_from(["", "\0", "\ud800", "é" * 99])
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=3)),
    max_leaves=6,
)


@st.composite
def mutated(draw: st.DrawFn, documents: st.SearchStrategy[Json]) -> Json:
    """Draw one of the documents, and change up to three of its parts."""
    document = {"root": deepcopy(draw(documents))}
    for _ in range(draw(st.integers(0, 3))):
        holder, key = draw(st.sampled_from(_parts(document)))
        match draw(st.sampled_from(["replace", "remove", "double", "nest"])):
            case "replace":
                holder[key] = draw(VALUES)
            case "remove" if key != "root":
                del holder[key]
            case "double" if isinstance(holder, list):
                holder.append(deepcopy(holder[key]))
            case "nest":
                holder[key] = [holder[key]]
    return document["root"]


def _parts(document: Json) -> list[tuple[Any, Any]]:
    """Return every place of a document, as a container and a key or an index."""
    keys = list(document) if isinstance(document, dict) else range(len(document)) if isinstance(document, list) else []
    parts = [(document, key) for key in keys]
    return parts + [part for key in keys for part in _parts(document[key])]


@st.composite
def texts(draw: st.DrawFn, documents: st.SearchStrategy[Json]) -> bytes:
    """Draw the JSON text of a document; at times cut off, with a key twice, or with bytes changed."""
    text = json.dumps(draw(documents)).encode()
    match draw(st.sampled_from(["as it is", "as it is", "cut", "changed", "twice"])):
        case "cut":
            return text[: draw(st.integers(0, len(text)))]
        case "changed" if text:
            at = draw(st.integers(0, len(text) - 1))
            return text[:at] + draw(st.binary(min_size=1, max_size=2)) + text[at + 1 :]
        case "twice" if text.startswith(b'{"'):
            return text[:-1] + b"," + text[1:]
    return text
