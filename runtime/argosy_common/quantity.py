"""Quantities of memory as Kubernetes writes them (`16Gi`, `500M`, `1e9`), in bytes. Pure."""

import re
from decimal import Decimal

_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
_DECIMAL = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_QUANTITY = re.compile(r"([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+))(?:([KMGTPE]i)|([numkMGTPE])|[eE]([+-]?[0-9]{1,2}))?")


def parse_bytes(value: object) -> int:
    """Return the bytes of a quantity or a whole number, fractions rounded up. Raises ValueError where it is neither."""
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise ValueError(f"{value!r} is no quantity; write bytes as 16Gi, 500M or a whole number")
    amount = Decimal(value) if isinstance(value, int) else parse_quantity(value)
    if amount < 0:
        raise ValueError(f"{value!r} is negative; an amount of memory is 0 or more")
    if amount >= 2**63:
        raise ValueError(f"{value!r} is more than 8Ei - 1, the most a quantity holds")
    floor = int(amount)
    return floor if floor == amount else floor + 1


def parse_quantity(text: str) -> Decimal:
    """Return the amount of a quantity (`500m`, `16Gi`, `1e9`), unrounded. Raises ValueError where it is none."""
    match = _QUANTITY.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no quantity; write bytes as 16Gi, 500M or a whole number")
    number, binary, decimal, exponent = match.groups()
    amount = Decimal(number)
    if binary:
        return amount * _BINARY[binary]
    return amount.scaleb(int(exponent) if exponent else _DECIMAL[decimal or ""])


def format_bytes(amount: int) -> str:
    """Return the shortest exact quantity: the largest binary suffix that divides `amount`, else plain bytes."""
    for suffix, unit in reversed(_BINARY.items()):
        if amount and amount % unit == 0:
            return f"{amount // unit}{suffix}"
    return str(amount)
