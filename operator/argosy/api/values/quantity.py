"""Amounts as Kubernetes writes them: memory (`16Gi`), shares (`10%`), rates (`0.1%`) and durations (`5m`, `200ms`).

In code memory is in bytes, a share in thousandths (10 % is 100), a rate in millionths (0.1 % is 1000), a duration in
milliseconds; all are integers.
"""

import re
from typing import Annotated, Final

from pydantic import AfterValidator, BeforeValidator, PlainSerializer, WithJsonSchema

from argosy_common.quantity import format_bytes, parse_bytes

THOUSANDTHS: Final = 1000
"""In a whole: a share in code by this is a fraction."""
MILLIONTHS: Final = 1_000_000
"""In a whole: a rate in code by this is a fraction."""

_PERCENT = re.compile(r"([0-9]{1,6})(?:\.([0-9]))?%")
_RATE = re.compile(r"([0-9]{1,3})(?:\.([0-9]{1,4}))?%")
_DECIMALS = re.compile(r"[0-9]+\.([0-9]+)%")
_DURATION = re.compile(r"(?:([0-9]{1,6})h)?(?:([0-9]{1,6})m)?(?:([0-9]{1,6})s)?(?:([0-9]{1,6})ms)?")
_UNITS = (("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1))

QUANTITY_PATTERN = r"^([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$"
SHARE_PATTERN = r"^(100(\.0)?|[0-9]{1,2}(\.[0-9])?)%$"
RATE_PATTERN = r"^(100(\.0{1,4})?|[0-9]{1,2}(\.[0-9]{1,4})?)%$"
DURATION_PATTERN = r"^([0-9]{1,6}h)?([0-9]{1,6}m)?([0-9]{1,6}s)?([0-9]{1,6}ms)?$"


def parse_percent(value: object) -> int:
    """Return the thousandths of a percentage: `12.5%` is 125. Raises ValueError if it is none."""
    match = _PERCENT.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError(_no_percentage(value, 1, '"10%" or "2.5%"'))
    return int(match.group(1)) * 10 + int(match.group(2) or 0)


def parse_share(value: object) -> int:
    """Return the thousandths of a percentage of at most 100 %. Raises ValueError if it is none."""
    thousandths = parse_percent(value)
    if thousandths > THOUSANDTHS:
        raise ValueError(f'{value!r} is more than "100%"')
    return thousandths


def format_percent(thousandths: int) -> str:
    """Return the percentage for thousandths: 125 is `12.5%`."""
    percent, tenth = divmod(thousandths, 10)
    return f"{percent}.{tenth}%" if tenth else f"{percent}%"


def parse_rate(value: object) -> int:
    """Return the millionths of a percentage of at most 100 %: `0.05%` is 500. Raises ValueError if it is none."""
    match = _RATE.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError(_no_percentage(value, 4, '"0.1%" or "2%"'))
    millionths = int(match.group(1)) * 10_000 + int((match.group(2) or "").ljust(4, "0"))
    if millionths > MILLIONTHS:
        raise ValueError(f'{value!r} is more than "100%"')
    return millionths


def _no_percentage(value: object, decimals: int, examples: str) -> str:
    """Return why a value is no percentage with at most `decimals` digits after the point."""
    match = _DECIMALS.fullmatch(value) if isinstance(value, str) else None
    if match is not None and len(match.group(1)) > decimals:
        return f"{value!r} has too many decimals for this percentage, at most {decimals}; write it as {examples}"
    return f"{value!r} is no percentage; write it as {examples}"


def format_rate(millionths: int) -> str:
    """Return the percentage for millionths: 500 is `0.05%`."""
    percent, rest = divmod(millionths, 10_000)
    return f"{percent}.{rest:04}".rstrip("0").rstrip(".") + "%"


def parse_duration(value: object) -> int:
    """Return the milliseconds of a duration such as `1h30m` or `200ms`. Raises ValueError if it is none."""
    match = _DURATION.fullmatch(value) if isinstance(value, str) and value else None
    if match is None:
        raise ValueError(f"{value!r} is no duration; write it as 200ms, 30s, 5m or 1h30m")
    return sum(int(part or 0) * size for part, (_, size) in zip(match.groups(), _UNITS, strict=True))


def format_duration(milliseconds: int) -> str:
    """Return the duration for milliseconds: 5,400,000 is `1h30m`, 0 is `0s`."""
    text, rest = "", milliseconds
    for unit, size in _UNITS:
        amount, rest = divmod(rest, size)
        text += f"{amount}{unit}" if amount else ""
    return text or "0s"


def _positive(milliseconds: int) -> int:
    if not milliseconds:
        raise ValueError("must be more than 0")
    return milliseconds


Quantity = Annotated[
    int,
    BeforeValidator(parse_bytes),
    PlainSerializer(format_bytes, return_type=str),
    WithJsonSchema(
        {
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "pattern": QUANTITY_PATTERN,
            "x-kubernetes-int-or-string": True,
        }
    ),
]
"""Memory or storage; bytes in code."""
Share = Annotated[
    int,
    BeforeValidator(parse_share),
    PlainSerializer(format_percent, return_type=str),
    WithJsonSchema({"type": "string", "pattern": SHARE_PATTERN, "maxLength": 6}),
]
"""A percentage of a whole, at most 100; thousandths in code."""
MeasuredShare = Annotated[
    int,
    BeforeValidator(lambda value: value if type(value) is int else parse_share(value)),
    PlainSerializer(format_percent, return_type=str),
    WithJsonSchema({"type": "string", "pattern": SHARE_PATTERN, "maxLength": 6}),
]
"""A share in a status, which code sets as thousandths."""
Rate = Annotated[
    int,
    BeforeValidator(parse_rate),
    PlainSerializer(format_rate, return_type=str),
    WithJsonSchema({"type": "string", "pattern": RATE_PATTERN, "maxLength": 9}),
]
"""A share that may be very small, such as that of requests which fail; millionths in code."""
_DURATION_SCHEMA = WithJsonSchema({"type": "string", "pattern": DURATION_PATTERN, "minLength": 2, "maxLength": 32})
Duration = Annotated[
    int, BeforeValidator(parse_duration), PlainSerializer(format_duration, return_type=str), _DURATION_SCHEMA
]
"""A length of time; milliseconds in code."""
MeasuredDuration = Annotated[
    int,
    BeforeValidator(lambda value: value if type(value) is int else parse_duration(value)),
    PlainSerializer(format_duration, return_type=str),
    _DURATION_SCHEMA,
]
"""A length of time in a status, which code sets as milliseconds."""
PositiveDuration = Annotated[
    int,
    BeforeValidator(parse_duration),
    AfterValidator(_positive),
    PlainSerializer(format_duration, return_type=str),
    _DURATION_SCHEMA,
]
"""A length of time above 0; milliseconds in code."""
