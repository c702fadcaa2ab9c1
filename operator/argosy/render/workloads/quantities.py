"""Amounts as the API server gives them back, so that what was applied and what is there compare as equal."""

from decimal import Decimal

from argosy.api.quantity import format_bytes

_DECIMAL = (("E", 18), ("P", 15), ("T", 12), ("G", 9), ("M", 6), ("k", 3))


def memory(amount: int) -> str:
    """Bytes: `16Gi`, and `500M` where no binary suffix is exact."""
    text = format_bytes(amount)
    return _decimal(amount) if text.isdecimal() else text


def cores(text: str) -> str:
    """CPU cores: whole ones as `4`, others as `500m`. `text` is one that the API takes: `0.5`, `500m`, `4`."""
    thousandths = int(text[:-1]) if text.endswith("m") else int(Decimal(text) * 1000)
    return f"{thousandths}m" if thousandths % 1000 else _decimal(thousandths // 1000)


def _decimal(amount: int) -> str:
    for suffix, zeros in _DECIMAL:
        if amount and amount % 10**zeros == 0:
            return f"{amount // 10**zeros}{suffix}"
    return str(amount)
