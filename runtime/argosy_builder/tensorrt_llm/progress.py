"""The progress of TensorRT-LLM, from the lines that it logs. Pure."""

import re
from collections.abc import Callable

from argosy_builder.contract import Progress

_LOG = re.compile(r"^\[[\d/:-]+\] \[TRT(?:-LLM)?\] (?:\[RANK \d+\] )?\[[A-Z]\] (?:\[RANK \d+\] )?")
_STEPS_OF_A_RANK = (
    ("Total time of constructing network", 0.05),
    ("Total optimization profiles added", 0.08),
    ("Build TensorRT engine", 0.1),
    ("Total time of building", 0.9),
    ("Serializing engine to", 0.92),
)
"""What a rank's build says, and how far it is then."""
_DONE = "Engine serialized"
_BATCH = re.compile(r"Calibrating batch (\d+)")
_SHARDS = re.compile(r"Loading checkpoint shards: +(\d+)%")
_CALIBRATED = ("Quantization done", 85)
_EXPORTED = ("Quantized model exported", 100)


def of_build(ranks: int, progress: Progress) -> Callable[[str], None]:
    """Return the function for lines of `trtllm-build`, which builds the ranks, several at once."""
    done, within = 0, 0.0

    def report(line: str) -> None:
        nonlocal done, within
        text = plain(line)
        if _DONE in text:
            done, within = done + 1, 0.0
        within = max([within, *(far for words, far in _STEPS_OF_A_RANK if words in text)])
        progress(min(100, int(100 * (done + within) / ranks)), text)

    return report


def of_quantization(samples: int, batch: int, progress: Progress) -> Callable[[str], None]:
    """Return the same of `quantize_and_export`: the model is loaded (20 %), calibrated on `samples` (65 %), and
    written.
    """
    batches = max(1, -(-samples // batch))

    def report(line: str) -> None:
        text, percent = plain(line), -1
        if match := _SHARDS.search(text):
            percent = int(match[1]) // 5
        elif match := _BATCH.search(text):
            percent = 20 + min(65, 65 * int(match[1]) // batches)
        for words, far in (_CALIBRATED, _EXPORTED):
            if words in text:
                percent = far
        progress(percent, text)

    return report


def plain(line: str) -> str:
    """Return a line without its time and level."""
    return _LOG.sub("", line)
