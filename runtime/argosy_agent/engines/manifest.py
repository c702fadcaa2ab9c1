"""An artifact's manifest: the description of the engine, and its files. Pure."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from argosy_agent.contract.builddocuments import text_of, to_accuracy, to_data, to_shape
from argosy_agent.contract.builds import AccuracyReport, BuildRequest, DataSource, ModelShape
from argosy_agent.contract.fields import DocumentError, Fields, document
from argosy_agent.transfer.errors import shown

FORMAT = 1
"""Of the manifest's text. One of a higher number may mean what is not known here."""
HEXES = frozenset("0123456789abcdef")


class NewerFormatError(DocumentError):
    """A newer release wrote it, and it may be right."""


@dataclass(frozen=True, slots=True)
class EngineFile:
    """One file: its path below the engine's folder, its bytes, its SHA-256 in hexadecimal digits.

    `mark`: a value from its store when it was written, which changes with the content.
    """

    name: str
    size: int
    sha256: str
    mark: str = ""


@dataclass(frozen=True, slots=True)
class Manifest:
    """A published engine, or one before publishing, without `attempt`, `digest`, `files` and `uri`.

    `digest`: checked by agents that fetch `uri`, the folder of the files. `compiler`: its name and version; `created`:
    RFC 3339; `accuracy`: measured by the gate before the engine was published.
    """

    key: str
    builder: str = ""
    precision: str = ""
    architecture: str = ""
    compiler: str = ""
    model: DataSource = field(default_factory=DataSource)
    options: Mapping[str, Any] = field(default_factory=dict)
    created: str = ""
    accuracy: AccuracyReport | None = None
    shape: ModelShape | None = None
    attempt: str = ""
    digest: str = ""
    files: tuple[EngineFile, ...] = ()
    uri: str = ""

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(file.size for file in self.files)


def manifest_of(
    key: str,
    request: BuildRequest,
    model_digest: str,
    compiler: str,
    created: str,
    accuracy: AccuracyReport | None = None,
    shape: ModelShape | None = None,
) -> Manifest:
    """Return the manifest of an engine before it is published. It contains no credentials."""
    return Manifest(
        key=key,
        builder=request.builder,
        precision=request.precision,
        architecture=request.architecture,
        compiler=compiler,
        model=DataSource(shown(request.model.uri), model_digest),
        options=request.options,
        created=created,
        accuracy=accuracy,
        shape=shape,
    )


def without_credentials(request: BuildRequest) -> BuildRequest:
    """Return the request as it may lie in a store that others read: no password and no signature stands in its URIs."""
    gate = request.gate
    return replace(
        request,
        model=_clean(request.model),
        calibration=_clean(request.calibration),
        gate=gate and replace(gate, data=_clean(gate.data), script=_clean(gate.script)),
    )


def manifest_text(manifest: Manifest) -> str:
    """Return a manifest as JSON, indented for people. Where it lies it does not say: a store may be copied
    elsewhere.
    """
    values = asdict(replace(manifest, uri=""))
    return text_of({"format": FORMAT, **values, "files": [asdict(file) for file in manifest.files]})


def parse_manifest(text: str, uri: str, name: str = "manifest.json") -> Manifest:
    """Return the manifest in a text; `uri` is the folder in which it lies. Raises DocumentError, which names
    the field.
    """
    fields = document(text, name)
    if fields.number("format") > FORMAT:
        words = f"{fields.at('format')} is {fields.number('format')}, which a newer release of Argosy wrote"
        raise NewerFormatError(f"{words}: update this one")
    attempt = _hexadecimal(fields, "attempt")
    return Manifest(
        key=fields.text("key"),
        builder=fields.text("builder", ""),
        precision=fields.text("precision", ""),
        architecture=fields.text("architecture", ""),
        compiler=fields.text("compiler", ""),
        model=to_data(fields.mapping("model", {})),
        options=fields.mapping("options", {}).values,
        created=fields.text("created", ""),
        accuracy=to_accuracy(fields.mapping("accuracy")) if "accuracy" in fields.values else None,
        shape=to_shape(fields.mapping("shape")) if "shape" in fields.values else None,
        attempt=attempt,
        digest=fields.text("digest"),
        files=tuple(map(_file, fields.list("files"))),
        uri=f"{uri.rstrip('/')}/{attempt}",
    )


def _clean(source: DataSource) -> DataSource:
    return replace(source, uri=shown(source.uri))


def _file(fields: Fields) -> EngineFile:
    name = fields.text("name")
    if not name or name.startswith("/") or ".." in name.split("/"):
        raise DocumentError(f"{fields.at('name')}: {name!r:.80} is no path below a folder")
    return EngineFile(name, fields.number("size"), _hexadecimal(fields, "sha256"), fields.text("mark", ""))


def _hexadecimal(fields: Fields, key: str) -> str:
    text = fields.text(key)
    if not text or not HEXES.issuperset(text):
        raise DocumentError(f"{fields.at(key)}: {text!r:.80} is no hexadecimal number")
    return text
