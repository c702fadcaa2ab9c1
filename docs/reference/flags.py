"""The flags of `argosy serve`, from its argument parser."""

import argparse

from docs.reference.resources import NOTE

from argosy_runtime.flags import WITHOUT_EFFECT, argument_parser
from argosy_runtime.flags.features import FEATURES

_INTRODUCTION = """
`argosy serve` takes tritonserver's flags by the same names, as `--name=value` or `--name value`, and some of its own
(`--control-token-file`, `--drain-quiet-secs` and others that [Triton compatibility](../triton-compatibility.md) names).
A flag that is in neither list below ends the command line with an error.

| flag | value | default | meaning |
|---|---|---|---|
"""
_WITHOUT_EFFECT = """
## Without effect

These flags of tritonserver are accepted and change nothing; the log names each that was given. A value of a wrong kind
ends the command line.

"""
_WITHOUT_FEATURE = """
The flags of a feature that is off change nothing either, and the log names those that were given.

| feature | flags |
|---|---|
"""


def flags_page() -> str:
    """Return the page of all flags."""
    actions = [action for action in argument_parser()._actions if not isinstance(action, argparse._HelpAction)]
    ignored = "".join(f"- `--{name}`\n" for name in sorted(WITHOUT_EFFECT))
    rows = "".join(map(_row, actions))
    note = NOTE.format(source="runtime/argosy_runtime/flags/parser.py")
    without_effect = f"{_WITHOUT_EFFECT}{ignored}{_WITHOUT_FEATURE}{_features()}"
    return f"# Flags of `argosy serve`\n\n{note}{_INTRODUCTION}{rows}{without_effect}"


def _features() -> str:
    return "".join(
        f"| {_code(feature.needs)} | {', '.join(f'`--{flag}`' for flag in feature.flags)} |\n" for feature in FEATURES
    )


def _code(text: str) -> str:
    return f"`{text}`" if text.startswith("-") else text


def _row(action: argparse.Action) -> str:
    names = ", ".join(f"`{name}`" for name in action.option_strings)
    meaning = (action.help or "").replace("|", "\\|").replace("<", "&lt;")
    return f"| {names} | {_value(action)} | {_default(action)} | {meaning} |\n"


def _value(action: argparse.Action) -> str:
    if action.nargs == 0:
        return "none"
    if action.choices:
        return ", ".join(map(str, action.choices))
    return f"`{action.metavar}`" if action.metavar else getattr(action.type, "__name__", "text")


def _default(action: argparse.Action) -> str:
    if action.required:
        return "**required**"
    if isinstance(action.default, bool):
        return str(action.default).lower()
    return "" if action.default in (None, [], {}, "") else f"{action.default}"
