"""The sizes of a server's documents: the most bytes that each of its models takes of them. Pure.

A ConfigMap holds at most 1 MiB. Of a server's two ConfigMaps the state is the larger: it contains the desired models
and their states. So packing bounds the sum of its models' parts of the state, and both fit into one object each.
"""

import json
from collections.abc import Iterable, Mapping

from .models import VersionSource

DOCUMENT_BYTES = 1_020_000
"""The most that one document may have: a ConfigMap's 1 MiB (1,048,576 bytes) less a margin."""
STAYING_BYTES = 1_000_000
"""The most that the models of a server may take of it. The rest is for what is said of the server itself."""
PLACED_BYTES = 950_000
"""The most that they may take with one that is newly placed there: a model that grows a little is not moved for it."""
_DIGITS = 19
"""Those of the largest version."""
REASON_BYTES = 64
"""What is kept free for why one version is not ready, in JSON. It may be longer while others say less."""

_ANNOTATIONS = 4
"""All annotations of an object together may have a fourth of what its data may."""
_APPLIED = 181
"""A model in what is applied without its values: braces, keys, indentation, and two keys of 16 digits."""
_INSTANCES = 22
_RESOURCE = 18
_GPU = 10
"""One index in a list, on a line of its own."""
_STEP = 30
"""The line of a step without its name, with a version of 19 digits."""
_SOURCE, _TEXT, _EXCLUSIVE = 56, 12, 21
"""A version in what is applied, with a memory of 15 digits; each text that it has, without its key and itself."""
OWN_BYTES = 180
"""A version's own configuration in what is applied, without its text and its steps: two keys of 16 digits, braces."""
OWN_STEP_BYTES = 34
"""The line of a step of it without its name, with a version of 19 digits."""
_LOADED = 216
"""A version in what is said of the server, without its model's name and its number, where its reason has
`REASON_BYTES`. One that is ready takes less, with the digest of its files."""
_PLACED, _PLACED_GPU = 6, 5
_NEED = 30
"""What it was placed with there, with a memory of 15 digits."""
_SERVED, _SERVED_VERSION = 6, 21
_DRAINS = 42
"""The annotations of a server's ConfigMap, without names: where a model sits, with what, which versions serve, and
since when it drains."""


def text_bytes(text: str) -> int:
    """Return bytes of a text as JSON, its quotes included."""
    return len(json.dumps(text, ensure_ascii=False).encode(errors="surrogatepass"))


def config_bytes(text: str) -> int:
    """Return bytes of a `config.pbtxt` as JSON: what `text_bytes` gives, sooner, of a text without control characters
    but the ends of its lines.
    """
    return len(text.encode()) + text.count("\n") + text.count('"') + text.count("\\") + 2


def texts_bytes(texts: Mapping[str, str]) -> int:
    """Return the bytes that a model's `texts` take of what is applied."""
    return sum(_TEXT + _TEXT + text_bytes(name) + text_bytes(text) for name, text in texts.items()) + (
        2 * _TEXT if texts else 0
    )


def entry_bytes(
    name: str,
    resource: str,
    config: int,
    versions: Mapping[int, VersionSource],
    steps: Iterable[str] = (),
    gpus: int = 0,
    more_versions: int = 0,
) -> int:
    """Return the most bytes that a model or an ensemble takes of any document of its server.

    `name` and `resource` as in `RenderedModel`; `config`: bytes, from `config_bytes`; `gpus`: the number of its GPUs.
    `more_versions`: the number of versions that may be loaded in addition to `versions`, each as large as the largest.
    Own configurations of versions count with their texts.
    """
    declared = text_bytes(resource or name)
    sizes = [_version(number, source, declared) for number, source in versions.items()]
    most = max(sizes, default=_version(0, VersionSource(), declared)) + 2 * _DIGITS
    applied = _APPLIED + text_bytes(name) + config + _INSTANCES + _GPU * gpus
    applied += _RESOURCE + declared if resource else 0
    applied += sum(_STEP + text_bytes(step) for step in steps)
    notes = 4 * declared + _PLACED + _PLACED_GPU * gpus + _NEED + _SERVED + _DRAINS
    notes += _SERVED_VERSION * (len(sizes) + more_versions)
    return max(applied + sum(sizes) + more_versions * most, _ANNOTATIONS * notes)


def own_bytes(config: int, steps: Iterable[str] = ()) -> int:
    """Return the bytes that a version's own configuration takes, with a text of `config` bytes, from `config_bytes`."""
    return OWN_BYTES + config + sum(OWN_STEP_BYTES + text_bytes(step) for step in steps)


def stepped(size: int) -> int:
    """Return a size that is an eighth above at most, one of few: what takes nearly the same is equivalent."""
    step = 1 << max(0, size.bit_length() - 4)
    return -(-size // step) * step


def _version(number: int, source: VersionSource, declared: int) -> int:
    """Return the bytes of a version in both parts of a state; `declared`: the bytes of its model's name."""
    texts = (("uri", source.uri), ("digest", source.digest), ("filename", source.filename), ("secret", source.secret))
    size = _SOURCE + sum(_TEXT + len(key) + text_bytes(text) for key, text in texts if text)
    size += own_bytes(text_bytes(source.own.text), source.own.steps) if source.own is not None else 0
    return size + (_EXCLUSIVE if source.exclusive else 0) + _LOADED + declared + 2 * len(str(number))
