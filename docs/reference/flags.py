"""The flags of `argosy serve`, from its argument parser."""

import argparse

from docs.reference.resources import NOTE

from argosy_runtime.flags import WITHOUT_EFFECT, argument_parser

_INTRODUCTION = """
`argosy serve` takes tritonserver's flags by the same names, as `--name=value` or `--name value`, and some of its own
(`--control-token-file`, `--drain-quiet-secs` and others that [Triton compatibility](../triton-compatibility.md) names).
A flag that is in neither list below ends the command line with an error.

| flag | value | default | meaning |
|---|---|---|---|
"""
_WITHOUT_EFFECT = """
## Without effect

These flags of tritonserver are accepted and change nothing; the log names each that was given. Values that ask for what
is missing end the command line.

"""


def flags_page() -> str:
    """Return the page of all flags."""
    actions = [action for action in argument_parser()._actions if not isinstance(action, argparse._HelpAction)]
    ignored = "".join(f"- `--{name}`\n" for name in sorted(WITHOUT_EFFECT))
    rows = "".join(map(_row, actions))
    note = NOTE.format(source="runtime/argosy_runtime/flags/parser.py")
    return f"# Flags of `argosy serve`\n\n{note}{_INTRODUCTION}{rows}{_WITHOUT_EFFECT}{ignored}"


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
