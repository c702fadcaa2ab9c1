"""Class labels of outputs, from the files that configurations name."""

from pathlib import Path

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.errors import invalid, unsupported
from argosy_runtime.modelconfig.modelfiles import is_inside
from argosy_runtime.repository.folders.layout import ModelFolder


def read_labels(folder: ModelFolder, version: int, config: ModelConfig) -> dict[str, list[str]]:
    """Return the class labels of each output that names a label file, one a line. Raises ServingError."""
    labels: dict[str, list[str]] = {}
    for output in config.output:
        if output.label_filename:
            path = folder.data_folder(version, output.label_filename) / output.label_filename
            if not is_inside(output.label_filename):
                raise unsupported(
                    f"label file path '{path}' for output '{output.name}' in model '{folder.name}' is outside model "
                    "directory"
                )
            labels[output.name] = _read_lines(path, output.name)
    return labels


def _read_lines(path: Path, output: str) -> list[str]:
    try:
        return label_lines(path.read_bytes().decode("utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        raise invalid(f"cannot read label_filename '{path.name}' of output '{output}': {error}") from error


def label_lines(text: str) -> list[str]:
    r"""Return the lines of a label file, which end at `\n` or `\r\n` alone.

    Other line separators, such as U+2028, are part of a label: a label's line number is its class.
    """
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return [line.removesuffix("\r") for line in lines]
