"""Amounts as Kubernetes writes them: memory (`16Gi`), shares (`10%`) and durations (`5m`).

In code memory is a whole number of bytes, a share is in thousandths (10 % is 100), a duration is in seconds.
"""

import re
from decimal import Decimal
from typing import Annotated

from pydantic import BeforeValidator, PlainSerializer, WithJsonSchema

_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_QUANTITY = re.compile(r"([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))(?:([KMGTPE]i)|([numkMGTPE])|[eE]([+-]?[0-9]{1,2}))?")
_PERCENT = re.compile(r"([0-9]{1,6})(?:\.([0-9]))?%")
_DURATION = re.compile(r"(?:([0-9]{1,6})h)?(?:([0-9]{1,6})m)?(?:([0-9]{1,6})s)?")

QUANTITY_PATTERN = r"^([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]{1,2})?$"
PERCENT_PATTERN = r"^[0-9]{1,6}(\.[0-9])?%$"
SHARE_PATTERN = r"^(100(\.0)?|[0-9]{1,2}(\.[0-9])?)%$"
DURATION_PATTERN = r"^([0-9]{1,6}h)?([0-9]{1,6}m)?([0-9]{1,6}s)?$"


def parse_bytes(value: object) -> int:
    """Bytes in a quantity (`16Gi`, `500M`, `1e9`, a number), fractions rounded up. ValueError if none is."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError(f"{value!r} is no quantity; write bytes as 16Gi, 500M or a whole number")
    amount = Decimal(value) if isinstance(value, int) else _parse_quantity(value)
    if amount < 0:
        raise ValueError(f"{value!r} is negative; an amount of memory is 0 or more")
    if amount >= 2**63:
        raise ValueError(f"{value!r} is more than 8Ei - 1, the most a quantity holds")
    whole = int(amount)
    return whole if whole == amount else whole + 1


def _parse_quantity(text: str) -> Decimal:
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no quantity; write bytes as 16Gi, 500M or a whole number")
    number, binary, decimal, exponent = match.groups()
    amount = Decimal(number)
    if binary:
        return amount * _BINARY[binary]
    return amount.scaleb(int(exponent) if exponent else _DECIMAL[decimal or ""])


def format_bytes(amount: int) -> str:
    """The shortest exact quantity: the largest binary suffix that divides `amount`, else plain bytes."""
    for suffix, unit in reversed(_BINARY.items()):
        if amount and amount % unit == 0:
            return f"{amount // unit}{suffix}"
    return str(amount)


def parse_percent(value: object) -> int:
    """Thousandths in a percentage (`12.5%` is 125). ValueError if it is none."""
    match = _PERCENT.fullmatch(value) if isinstance(value, str) else None
    if match is None:
        raise ValueError(f'{value!r} is no percentage; write it as "10%" or "2.5%"')
    return int(match.group(1)) * 10 + int(match.group(2) or 0)


def parse_share(value: object) -> int:
    """Thousandths in a percentage of at most 100 %. ValueError otherwise."""
    thousandths = parse_percent(value)
    if thousandths > 1000:
        raise ValueError(f'{value!r} is more than "100%"')
    return thousandths


def format_percent(thousandths: int) -> str:
    """The percentage for thousandths: 125 is `12.5%`."""
    whole, tenth = divmod(thousandths, 10)
    return f"{whole}.{tenth}%" if tenth else f"{whole}%"


def parse_duration(value: object) -> int:
    """Seconds in a duration (`1h30m`, `5m`, `30s`). ValueError if it is none."""
    match = _DURATION.fullmatch(value) if isinstance(value, str) and value else None
    if match is None:
        raise ValueError(f"{value!r} is no duration; write it as 30s, 5m or 1h30m")
    hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return hours * 3600 + minutes * 60 + seconds


def format_duration(seconds: int) -> str:
    """The duration for seconds: 5400 is `1h30m`, 0 is `0s`."""
    minutes, rest = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    parts = [f"{amount}{unit}" for amount, unit in ((hours, "h"), (minutes, "m"), (rest, "s")) if amount]
    return "".join(parts) or "0s"


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
Percent = Annotated[
    int,
    BeforeValidator(parse_percent),
    PlainSerializer(format_percent, return_type=str),
    WithJsonSchema({"type": "string", "pattern": PERCENT_PATTERN, "maxLength": 9}),
]
"""A percentage that may pass 100; thousandths in code."""
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
"""A share in a status, which code gives as thousandths."""
Duration = Annotated[
    int,
    BeforeValidator(parse_duration),
    PlainSerializer(format_duration, return_type=str),
    WithJsonSchema({"type": "string", "pattern": DURATION_PATTERN, "minLength": 2, "maxLength": 24}),
]
"""A length of time; seconds in code."""
