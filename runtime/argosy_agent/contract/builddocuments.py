"""The JSON texts between the operator and a build: the request, and the report. Pure.

What has its default is left out; texts are checked field by field when they are read, as people edit ConfigMaps.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, TypeVar

from .builds import (
    AccuracyReport,
    BuildFailure,
    BuildReport,
    BuildRequest,
    BuildState,
    DataSource,
    Gate,
    ModelShape,
    TensorSpec,
)
from .fields import Fields, document, file_name, uri

REQUEST_KEY = "request.json"
"""The key of a build's ConfigMap under which its `request_text` stands."""
REPORT_KEY = "report.json"
"""The key of a build's report ConfigMap under which its `report_text` stands."""

_Value = TypeVar("_Value")


def request_text(request: BuildRequest) -> str:
    """Return a request as JSON, indented for people."""
    return text_of(asdict(request))


def parse_request(text: str) -> BuildRequest:
    """Return the request in a text. Raises DocumentError, which names the field."""
    fields = document(text, REQUEST_KEY)
    return BuildRequest(
        builder=fields.text("builder"),
        architecture=fields.text("architecture"),
        compiler=fields.text("compiler"),
        store=uri(fields.text("store"), fields.at("store")),
        model=to_data(fields.mapping("model")),
        filename=_file_name(fields, "filename"),
        precision=fields.text("precision", ""),
        options=fields.mapping("options", {}).values,
        inputs=tuple(map(_tensor, fields.list("inputs", []))),
        outputs=tuple(map(_tensor, fields.list("outputs", []))),
        max_batch_size=fields.number("max_batch_size", 0),
        batch_sizes=fields.numbers("batch_sizes"),
        tensor=fields.number("tensor", 1),
        pipeline=fields.number("pipeline", 1),
        calibration=to_data(fields.mapping("calibration", {})),
        calibration_samples=fields.number("calibration_samples", 0),
        gate=_optional(fields, "gate", _gate),
        skip=fields.text("skip", ""),
    )


def report_text(report: BuildReport) -> str:
    """Return a report as JSON, indented for people."""
    return text_of(asdict(report))


def parse_report(text: str) -> BuildReport:
    """Return the report in a text. Raises DocumentError, which names the field."""
    fields = document(text, REPORT_KEY)
    failure = fields.text("failure", "")
    return BuildReport(
        state=BuildState(fields.one_of("state", BuildState)),
        pod=fields.text("pod", ""),
        phase=fields.text("phase", ""),
        percent=fields.number("percent", 0),
        line=fields.text("line", ""),
        key=fields.text("key", ""),
        uri=uri(fields.text("uri", ""), fields.at("uri")),
        digest=fields.text("digest", ""),
        size=fields.number("size", 0),
        cached=fields.flag("cached", False),
        seconds=fields.amount("seconds", 0.0),
        compiler=fields.text("compiler", ""),
        failure=BuildFailure(fields.one_of("failure", BuildFailure)) if failure else None,
        message=fields.text("message", ""),
        accuracy=_optional(fields, "accuracy", to_accuracy),
        shape=_optional(fields, "shape", to_shape),
    )


def to_accuracy(fields: Fields) -> AccuracyReport:
    """Return the accuracy report that `asdict` made these of. Raises DocumentError."""
    details = fields.mapping("details", {})
    return AccuracyReport(
        metric=fields.text("metric", ""),
        value=fields.amount("value"),
        passed=fields.flag("passed"),
        samples=fields.number("samples"),
        data_digest=fields.text("data_digest", ""),
        at=fields.text("at"),
        details={name: details.amount(name) for name in details.values},
        **{name: fields.amount(name) for name in _BOTH_SIDES if fields.values.get(name) is not None},
    )


_BOTH_SIDES = ("baseline", "engine", "delta", "minimum", "maximum")


def to_data(fields: Fields) -> DataSource:
    """Return the source that `asdict` made these of. Raises DocumentError."""
    return DataSource(
        uri(fields.text("uri", ""), fields.at("uri")), fields.text("digest", ""), _file_name(fields, "secret")
    )


def _tensor(fields: Fields) -> TensorSpec:
    return TensorSpec(fields.text("name"), fields.text("data_type"), fields.integers("dims"))


def _gate(fields: Fields) -> Gate:
    return Gate(
        data=to_data(fields.mapping("data")),
        metric=fields.text("metric", ""),
        script=to_data(fields.mapping("script", {})),
        minimum=fields.amount("minimum") if fields.values.get("minimum") is not None else None,
        maximum=fields.amount("maximum") if fields.values.get("maximum") is not None else None,
        baseline_precision=fields.text("baseline_precision", ""),
        samples=fields.number("samples", 0),
    )


def to_shape(fields: Fields) -> ModelShape:
    """Return the shape that `asdict` made these of. Raises DocumentError."""
    return ModelShape(**{name: fields.number(name, 0) for name in ModelShape.__dataclass_fields__})


def _file_name(fields: Fields, key: str) -> str:
    return file_name(name, fields.at(key)) if (name := fields.text(key, "")) else ""


def _optional(fields: Fields, key: str, read: Callable[[Fields], _Value]) -> _Value | None:
    return read(fields.mapping(key)) if fields.values.get(key) is not None else None


def text_of(value: Mapping[str, Any]) -> str:
    """Return the result of `asdict` as indented JSON without empty values."""
    return json.dumps(_set(value), indent=1, ensure_ascii=False) + "\n"


def _set(value: Any) -> Any:
    """Return a value without empty entries of objects; a model's options stay as they are."""
    if isinstance(value, dict):
        entries = {key: entry if key == "options" else _set(entry) for key, entry in value.items()}
        return {key: entry for key, entry in entries.items() if entry not in (None, "", {}, [], ())}
    return [_set(entry) for entry in value] if isinstance(value, list | tuple) else value
