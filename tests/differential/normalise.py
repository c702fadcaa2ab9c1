"""Differences that two servers' answers may have, each as a rule with its reason; all else is compared as it is.

Rules work on the plain values of an answer. Those on text run on every string in it.
"""

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

Json = Any

ENSEMBLES = (
    "chain",
    "diamond",
    "failing_step",
    "optional_edge",
    "optional_link",
    "outer",
    "required_link",
    "sequence_chain",
)
SEQUENCE_FLAGS = ("sequence_id", "sequence_start", "sequence_end")


def traceback(text: str) -> str:
    """Return a Python traceback reduced to file, line and frame: each server has its files in another folder."""
    head, mark, frames = text.partition("\n\nAt:\n")
    return head + mark + re.sub(r"^  .*/", "  ", frames, flags=re.MULTILINE)


def no_missing_input(text: str) -> str:
    """Complete an empty list of missing inputs, of which Triton writes the second bracket alone."""
    return text.replace("missing required input(s) ]", "missing required input(s) []")


def poll_reason(text: str) -> str:
    """Remove why a model's configuration is refused: only Triton's log says it; Argosy says it in the answer too."""
    return re.sub(r"(failed to poll from model repository): .*", r"\1", text, flags=re.DOTALL)


TEXT_RULES: tuple[Callable[[str], str], ...] = (traceback, no_missing_input, poll_reason)


def server_name(answer: Json) -> Json:
    """Replace the server's name and version in its metadata."""
    if isinstance(answer, dict) and "extensions" in answer:
        return {**answer, "name": "<server>", "version": "<version>"}
    return answer


def ensemble_outputs(answer: Json) -> Json:
    """Sort an ensemble's outputs: Triton writes them in the order of its tensor map, which follows no configuration."""
    if not isinstance(answer, dict) or answer.get("model_name") not in ENSEMBLES or "outputs" not in answer:
        return answer
    raw = answer.get("raw_output_contents")
    order = sorted(range(len(answer["outputs"])), key=lambda index: str(answer["outputs"][index]["name"]))
    ordered = {**answer, "outputs": [answer["outputs"][index] for index in order]}
    if raw:
        ordered["raw_output_contents"] = [raw[index] for index in order]
    return ordered


def ensemble_parameters(answer: Json) -> Json:
    """Remove the sequence parameters that Triton's ensembles also answer with, once per step."""
    if not isinstance(answer, dict) or answer.get("model_name") not in ENSEMBLES:
        return answer
    result = _without_flags(answer)
    if "parameters" in result:
        left = _without_flags(result.pop("parameters"))
        result |= {"parameters": left} if left else {}
    return result


def _without_flags(answer: Mapping[str, Json]) -> dict[str, Json]:
    return {key: value for key, value in answer.items() if key not in SEQUENCE_FLAGS}


def not_a_number(answer: Json) -> Json:
    """Replace NaN by its name, since it does not equal itself."""
    return "NaN" if isinstance(answer, float) and math.isnan(answer) else answer


VALUE_RULES: tuple[Callable[[Json], Json], ...] = (
    server_name,
    ensemble_outputs,
    ensemble_parameters,
    not_a_number,
)


def content_type(answer: Mapping[str, Json]) -> dict[str, Json]:
    """Normalise the content type of errors and of empty bodies.

    Triton labels the same JSON error text/plain or application/json by the path it came from, and gives an empty body
    either label; no client can tell by it.
    """
    result = dict(answer)
    if result["type"] in ("", "text/plain", "application/json"):
        if result.get("status", 200) >= 400:
            result["type"] = "<error>"
        elif result.get("body") == "":
            result["type"] = "<empty>"
    return result


def normalised(answer: Mapping[str, Json]) -> Json:
    """Return the HTTP answer `{"status", "type", "body"}` with every rule applied."""
    return values(content_type(answer))


def values(answer: Json) -> Json:
    """Return any answer's values with the rules on text and on values applied, from the inside out."""
    if isinstance(answer, dict):
        answer = {key: values(value) for key, value in answer.items()}
    elif isinstance(answer, list):
        answer = [values(value) for value in answer]
    elif isinstance(answer, str):
        for rule in TEXT_RULES:
            answer = rule(answer)
    for value_rule in VALUE_RULES:
        answer = value_rule(answer)
    return answer
