"""From a model's folder to the complete, checked configuration that it is served with."""

import ast
import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.backends import isolation, resolve
from argosy_runtime.backends.contract import InstanceSpec, Isolation
from argosy_runtime.errors import ServingError, invalid
from argosy_runtime.execution.calls import ServerCalls
from argosy_runtime.execution.completing import complete_in_thread
from argosy_runtime.execution.process.instance import ProcessInstance
from argosy_runtime.modelconfig import ConfigError, check, check_structure, inplace, normalize, parse_json, parse_text
from argosy_runtime.modelconfig.modelfiles import first_gpu, for_device
from argosy_runtime.modelconfig.rules import check_placement
from argosy_runtime.modelconfig.versions import require

from . import unsupported
from .backend_settings import with_settings, without_settings
from .folders.layout import ModelFolder, inside
from .options import RepositoryOptions


@dataclass(frozen=True, slots=True)
class LoadedForm:
    """What a version's instances have been loaded from: the configuration, and the files by their fingerprints."""

    config: ModelConfig
    files: tuple[str, ...]

    def suits(self, wanted: "LoadedForm") -> bool:
        """Return whether they can serve as the other says, without being loaded anew."""
        return self.files == wanted.files and inplace.suits(self.config, wanted.config)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A folder understood: every default filled in, the versions to serve, ascending; class labels by output.

    `declared` is the configuration before the backend and the machine had their say. `steps` are the models that an
    ensemble runs; none where it is no ensemble.
    """

    folder: ModelFolder
    config: ModelConfig
    versions: tuple[int, ...]
    declared: ModelConfig
    steps: frozenset[str] = frozenset()
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def is_ensemble(self) -> bool:
        """Whether its steps are other models."""
        return bool(self.steps)

    def with_config(self, config: ModelConfig) -> "Prepared":
        """Return the same with another configuration."""
        return replace(self, config=config)

    def form(self, version: int) -> LoadedForm:
        """Return what a version is loaded from."""
        folder = self.folder
        own = folder.version_fingerprints.get(version, "")
        return LoadedForm(self.config, (str(folder.path), folder.shared_fingerprint, own))

    def completed_like(self, known: "Prepared | None") -> ModelConfig | None:
        """Return the configuration, completed as that of the same files was; None where these have to be asked
        again.
        """
        if known is None or known.is_ensemble or self.is_ensemble or known.versions[0] != self.versions[0]:
            return None
        if known.form(self.versions[0]).files != self.form(self.versions[0]).files:
            return None
        return inplace.completed_like(known.declared, known.config, self.config)


class Preparer:
    """Prepares models for one machine. `gpus` are those that may be used: ordinal to compute capability."""

    def __init__(self, options: RepositoryOptions, gpus: Mapping[int, str], calls: ServerCalls) -> None:
        self._options = options
        self._gpus = gpus
        self._ordinals = tuple(gpus)
        self._calls = calls

    def poll(self, folder: ModelFolder, override: str | None = None) -> Prepared:
        """Return what can be known without opening the model; raises ServingError where that is wrong already."""
        if folder.problem is not None:
            raise invalid(folder.problem)
        try:
            config = normalize(declared_config(folder, override), folder.name, folder.first_files)
            _raise_if_any(check_structure(config, folder.name))
            steps = frozenset(step.model_name for step in config.ensemble_scheduling.step)
            return Prepared(folder, config, tuple(require(config, folder.versions)), config, steps)
        except ConfigError as error:
            raise invalid(str(error)) from error

    async def complete(self, polled: Prepared, known: ModelConfig | None = None) -> Prepared:
        """With all that the backend and this machine add; raises ServingError where it cannot be served so.

        `known`: what the backend says is known already (see `Prepared.completed_like`).
        """
        folder, config = polled.folder, polled.config
        try:
            if known is not None:
                config = known
            elif not polled.is_ensemble:
                config = await self._autofilled(folder, config, polled.versions[0])
            config = normalize(config, folder.name, folder.first_files, self._ordinals)
        except ConfigError as error:
            raise invalid(str(error)) from error
        _raise_if_any([*check(config, folder.name), *check_placement(config, self._ordinals)])
        unsupported.refuse(config)
        labels = await asyncio.to_thread(_read_labels, folder.path, config)
        return replace(polled, config=config, labels=labels)

    async def _autofilled(self, folder: ModelFolder, config: ModelConfig, version: int) -> ModelConfig:
        """Completed from the file that the model's first GPU opens; the default file's name stays as it was."""
        gpu = first_gpu(config, self._gpus)
        own = for_device(config, None if gpu is None else self._gpus[gpu])
        found = await self._autofill(folder, own, version)
        if own is config:
            return found
        completed = ModelConfig()
        completed.CopyFrom(found)
        completed.default_model_filename = config.default_model_filename
        return completed

    async def _autofill(self, folder: ModelFolder, config: ModelConfig, version: int) -> ModelConfig:
        """Let the backend add what the model file knows, where the model's own code may run: not in this process."""
        path = folder.version_path(version)
        if not self._options.autocomplete or not await asyncio.to_thread(_needs_completion, path, config):
            return config
        given = with_settings(config, self._options.backend_settings)
        return without_settings(await self._completed(folder, given, version), config)

    async def _completed(self, folder: ModelFolder, config: ModelConfig, version: int) -> ModelConfig:
        path = folder.version_path(version)
        spec = InstanceSpec(config, version, folder.path, path, f"{config.name} (autocomplete)", "KIND_CPU", 0)
        timeout = load_timeout(config, self._options)
        if isolation(config) is Isolation.THREAD:
            return await complete_in_thread(
                spec, lambda: resolve(config.backend).complete_config(folder.path, path, config), timeout
            )
        return await ProcessInstance(spec, self._calls, timeout, lambda instance, error: None).complete()


def declared_config(folder: ModelFolder, override: str | None) -> ModelConfig:
    """Return what the user wrote: the override (JSON) of a load request, else config.pbtxt, else nothing."""
    if override is not None:
        return parse_json(override)
    if folder.config_text is None:
        return ModelConfig()
    return parse_text(folder.config_text, str(folder.config_path))


def load_timeout(config: ModelConfig, options: RepositoryOptions) -> float:
    """Return seconds an instance may take to load: the parameter LOAD_TIMEOUT_SECONDS, else the server's flag."""
    if "LOAD_TIMEOUT_SECONDS" not in config.parameters:
        return options.load_timeout
    text = config.parameters["LOAD_TIMEOUT_SECONDS"].string_value
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if seconds <= 0:
        raise invalid(f"parameter LOAD_TIMEOUT_SECONDS of model '{config.name}' must be a number above 0, not '{text}'")
    return seconds


def _needs_completion(version_path: Path, config: ModelConfig) -> bool:
    """Starting a process only to learn that a Python model completes nothing would double its load time."""
    if config.backend != "python":
        return True
    source = version_path / config.default_model_filename
    return not source.is_file() or _may_complete(source.read_bytes())


def _may_complete(source: bytes) -> bool:
    """Return whether a model's class may have the method: not where the source is whole without it, and no import, no
    base of the class and nothing that is done to it can bring it in.
    """
    if b"auto_complete_config" in source:
        return True
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError):
        return True
    named = [each for each in body if isinstance(each, ast.ClassDef) and each.name == "TritonPythonModel"]
    if not named:
        return bool(body)
    return any(each.bases or each.keywords or each.decorator_list for each in named)


def _raise_if_any(violations: Sequence[object]) -> None:
    if violations:
        raise invalid("; ".join(map(str, violations)))


def _read_labels(model_dir: Path, config: ModelConfig) -> dict[str, list[str]]:
    """Return the class labels of each output that names a label file, one a line."""
    labels: dict[str, list[str]] = {}
    for output in config.output:
        if output.label_filename:
            labels[output.name] = _read_lines(inside(model_dir, output.label_filename), output.name)
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


__all__ = [
    "Prepared",
    "Preparer",
    "ServingError",
    "declared_config",
    "isolation",
    "label_lines",
    "load_timeout",
]
