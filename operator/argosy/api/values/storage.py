"""URIs of models' files, and credentials for them."""

import re
from pathlib import PurePosixPath
from typing import Annotated
from urllib.parse import unquote, urlsplit

from pydantic import AfterValidator, Field, StringConstraints

from argosy.api.values.base import ApiModel
from argosy.api.values.meta import SUBDOMAIN, Name

SCHEMES = ("s3", "gs", "az", "abfss", "hf", "oci", "pvc", "http", "https", "file")
URI_PATTERN = r"^((s3|gs|az|abfss|hf|oci|pvc|http|https)://.+|file:.+)$"


def check_uri(uri: str) -> str:
    """Return the URI if Argosy reads its storage. Raises ValueError, which says how to write it, otherwise.

    `file:relative/path` is relative to the manifest's folder; every other scheme is followed by `//`.
    """
    scheme, colon, rest = uri.partition(":")
    if not colon or scheme not in SCHEMES:
        hint = "" if colon else f"; for files of this machine write file:{uri}"
        raise ValueError(f"{uri!r} does not begin with one of {', '.join(s + ':' for s in SCHEMES)}{hint}")
    if not rest.strip("/") or any(ord(letter) <= 32 for letter in uri):
        raise ValueError(f"{uri!r} names no path, or holds a space; write it like {scheme}:{_EXAMPLES[scheme]}")
    if scheme != "file" and (not rest.startswith("//") or not urlsplit(uri).netloc):
        raise ValueError(f"{uri!r} lacks its host, bucket or claim; write it like {scheme}:{_EXAMPLES[scheme]}")
    if scheme == "pvc" and not _is_claim(rest.removeprefix("//").partition("/")[0]):
        raise ValueError(
            f"{uri!r}: a PersistentVolumeClaim's name has only lower-case letters, digits, '-' and '.', at most 253; "
            f"write it like {scheme}:{_EXAMPLES[scheme]}"
        )
    if scheme == "abfss" and not all(urlsplit(uri).netloc.partition("@")):
        raise ValueError(f"{uri!r} names no container of an account; write it like {scheme}:{_EXAMPLES[scheme]}")
    return uri


def file_path(uri: str) -> str:
    """Return the path of a `file:` URI; an empty text for any other URI."""
    parts = urlsplit(uri)
    return unquote(parts.path) if parts.scheme == "file" else ""


def suffix_of(uri: str) -> str:
    """Return how the last name of a URI's path ends, with the dot; empty for a folder."""
    return PurePosixPath(unquote(urlsplit(uri).path)).suffix


def _is_claim(name: str) -> bool:
    return len(name) <= 253 and re.fullmatch(SUBDOMAIN, name) is not None


_EXAMPLES = {
    "s3": "//bucket/models/embedder",
    "gs": "//bucket/models/embedder",
    "az": "//container/models/embedder",
    "abfss": "//container@account.dfs.core.windows.net/models/embedder",
    "hf": "//organization/model",
    "oci": "//registry.example.com/models/embedder:1",
    "pvc": "//claim/models/embedder",
    "http": "//example.com/model.onnx",
    "https": "//example.com/model.onnx",
    "file": "models/embedder",
}

StorageUri = Annotated[
    str,
    StringConstraints(min_length=1, max_length=2048),
    AfterValidator(check_uri),
    Field(json_schema_extra={"pattern": URI_PATTERN}),
]
"""An address of stored files, by one of the schemes."""
DIGEST = r"^sha256:[0-9a-f]{64}$"
Digest = Annotated[str, StringConstraints(pattern=DIGEST, max_length=71)]
"""`sha256:` and 64 hexadecimal digits."""

_COMPONENT = r"([^/.][^/]*|\.[^/.][^/]*|\.\.[^/]+)"
RELATIVE_PATH = rf"^({_COMPONENT}(/{_COMPONENT})*)?$"
RelativePath = Annotated[str, StringConstraints(pattern=RELATIVE_PATH, max_length=253)]
"""A path beneath a folder, without `.` and `..`; or nothing."""
ABSOLUTE_FOLDER = rf"^/({_COMPONENT}(/{_COMPONENT})*)?$"
AbsoluteFolder = Annotated[str, StringConstraints(pattern=ABSOLUTE_FOLDER, max_length=1024)]
"""A folder's path from the root on, without `.` and `..`."""


class ModelStorage(ApiModel):
    """Credentials for a model's files."""

    secret_name: Name | None = Field(
        default=None,
        description="A Secret with the credentials for its files alone. Default: the pool's.",
    )
