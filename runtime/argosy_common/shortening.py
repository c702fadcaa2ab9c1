"""Texts of unknown length in messages, statuses and Events. Pure."""


def shortened(text: str, limit: int) -> str:
    """Return the text with at most `limit` characters, the last of them an ellipsis if it was cut."""
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
