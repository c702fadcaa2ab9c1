"""Settings of traces and of the log, by each client."""

from typing import Any

from tests.clients.four import FourClient


def _setting(answer: dict[str, Any], name: str) -> str:
    """Return a setting as text: over gRPC it is a message, over HTTP a value."""
    value = answer.get("settings", answer)[name]
    if isinstance(value, dict):
        value = next(iter(value.values()))
    return str(value[0] if isinstance(value, list) else value)


def test_trace_settings(client: FourClient) -> None:
    changed = client.message("update_trace_settings", "add_sub", {"trace_rate": "7"})
    assert _setting(changed, "trace_rate") == "7"
    assert _setting(client.message("get_trace_settings", "add_sub"), "trace_rate") == "7"
    assert _setting(client.message("get_trace_settings"), "trace_rate") != "7"
    cleared = client.message("update_trace_settings", "add_sub", {"trace_rate": None})
    assert _setting(cleared, "trace_rate") != "7"


def test_log_settings(client: FourClient) -> None:
    before = _setting(client.message("get_log_settings"), "log_verbose_level")
    assert before != "3"
    assert _setting(client.message("update_log_settings", {"log_verbose_level": 3}), "log_verbose_level") == "3"
    assert _setting(client.message("get_log_settings"), "log_verbose_level") == "3"
    client.message("update_log_settings", {"log_verbose_level": int(before)})
