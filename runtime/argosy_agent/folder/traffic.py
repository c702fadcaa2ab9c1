"""The parameter `version_traffic` in the text of a configuration: how a server divides requests among versions.

It is the part of a rendered configuration that a server takes over at once, whatever else it loads. It is handled as
text: the schema of configurations is too large for an agent.
"""

import re

_PARAMETER = re.compile(
    r'^parameters\s*\{\s*key\s*:\s*"version_traffic"\s*value\s*:?\s*\{'
    r'\s*string_value\s*:\s*"(?:[^"\\\n]|\\.)*"\s*\}\s*\}\n?',
    re.MULTILINE,
)


def traffic_of(config_text: str) -> str:
    """Return the parameter as it stands in a configuration, "" where that has none."""
    match = _PARAMETER.search(config_text)
    return match[0] if match is not None else ""


def with_traffic(config_text: str, traffic: str) -> str:
    """Return a configuration with this parameter in place of its own; unchanged where `traffic` is empty."""
    if not traffic or traffic_of(config_text) == traffic:
        return config_text
    rest = _PARAMETER.sub("", config_text)
    end = "" if not rest or rest.endswith("\n") else "\n"
    return f"{rest}{end}{traffic}"
