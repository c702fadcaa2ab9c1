"""The process that fuzzes one target: `python -m tests.fuzz.child MODULE TARGET FLAG …`, with libFuzzer's flags.

It imports no other targets, since what they need would be instrumented as well.
"""

import random
import re
import sys
from collections.abc import Sequence
from importlib import import_module

import atheris

_EXTREMES = (b"9" * 5000, b"0" * 5000 + b"1", b"[" * 5000, b"a" * 5000, b"-1", b"1e999", b"NaN", b"\\ud800", b"\xff")
"""What takes the place of a number or a word at times: too long to be come upon byte by byte."""
_SHARE = 0.02
_WORD = re.compile(rb"\d+|[a-zA-Z_]+")
_LONGEST = 16384
_INSTRUMENTED = ["argosy_runtime", "argosy_agent", "argosy_common", "google.protobuf.text_format"]


def main(arguments: Sequence[str]) -> None:
    """Fuzz until the flags' limits, or until an input fails. Does not return."""
    module, name, *flags = arguments
    with atheris.instrument_imports(include=_INSTRUMENTED):
        targets = import_module(module).TARGETS
    run = next(target.run for target in targets if target.name == name)
    atheris.Setup([sys.argv[0], f"-max_len={_LONGEST}", *flags], run, custom_mutator=mutated)
    atheris.Fuzz()


def mutated(data: bytes, most: int, seed: int) -> bytes:
    """Return other data of at most `most` bytes, at times with something extreme in it."""
    choose = random.Random(seed)
    words = list(_WORD.finditer(data)) if choose.random() < _SHARE else []
    if not words:
        return bytes(atheris.Mutate(data, most))
    word = choose.choice(words)
    return (data[: word.start()] + choose.choice(_EXTREMES) + data[word.end() :])[:most]


if __name__ == "__main__":
    main(sys.argv[1:])
