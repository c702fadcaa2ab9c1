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
from argosy_runtime.execution.calls.server import ServerCalls
from argosy_runtime.execution.completing import complete_in_thread
from argosy_runtime.execution.process.instance import ProcessInstance
from argosy_runtime.modelconfig import (
    ConfigError,
    check,
    check_structure,
    inplace,
    normalize,
    parse_json,
    parse_text,
)
from argosy_runtime.modelconfig.modelfiles import first_gpu, for_device
from argosy_runtime.modelconfig.parameters import adapters, variants
from argosy_runtime.modelconfig.rules import check_placement
from argosy_runtime.modelconfig.versions import require

from . import unsupported
from .folders.layout import ModelFolder, inside
from .options import RepositoryOptions, with_settings, without_settings


@dataclass(frozen=True, slots=True)
class LoadedRevision:
    """The revision that a version's instances were loaded from.

    The configuration, and the files by their fingerprints.
    """

    config: ModelConfig
    files: tuple[str, ...]

    def suits(self, desired: "LoadedRevision") -> bool:
        """Return whether the instances can serve as another revision without another load."""
        return self.files == desired.files and inplace.suits(self.config, desired.config)


@dataclass(frozen=True, slots=True)
class Prepared:
    """A folder with every default filled in, the versions to serve, ascending, and class labels by output.

    `declared` is the configuration before the backend and the machine completed it. `steps` are the models that an
    ensemble runs, or the variants of a routed model; other models have none.
    """

    folder: ModelFolder
    config: ModelConfig
    versions: tuple[int, ...]
    declared: ModelConfig
    steps: frozenset[str] = frozenset()
    labels: Mapping[str, Sequence[str]] = field(default_factory=dict)

    @property
    def is_ensemble(self) -> bool:
        """True if it has no instances of its own: its steps, or its variants, are other models."""
        return bool(self.steps)

    @property
    def is_routed(self) -> bool:
        """True if its steps are variants, of which one answers."""
        return variants.is_routed(self.config)

    @property
    def is_adapter(self) -> bool:
        """True if it is an adapter, whose one step is its base model."""
        return adapters.is_adapter(self.config)

    def with_config(self, config: ModelConfig) -> "Prepared":
        """Return the same with another configuration."""
        return replace(self, config=config)

    def revision(self, version: int) -> LoadedRevision:
        """Return the revision that a version is loaded from."""
        folder = self.folder
        own = folder.version_fingerprints.get(version, "")
        return LoadedRevision(self.config, (str(folder.path), folder.shared_fingerprint, own))

    def completed_like(self, former: "Prepared | None") -> ModelConfig | None:
        """Return the configuration, completed like that of the same files; None where these must be opened again."""
        if former is None or former.is_ensemble or self.is_ensemble or former.versions[0] != self.versions[0]:
            return None
        if former.revision(self.versions[0]).files != self.revision(self.versions[0]).files:
            return None
        return inplace.completed_like(former.declared, former.config, self.config)


class Preparer:
    """Preparation of models for one machine. `gpus` are the usable ones: ordinal to compute capability."""

    def __init__(self, options: RepositoryOptions, gpus: Mapping[int, str], calls: ServerCalls) -> None:
        self._options = options
        self._gpus = gpus
        self._ordinals = tuple(gpus)
        self._calls = calls

    def poll(self, folder: ModelFolder, override: str | None = None) -> Prepared:
        """Return what is certain without opening the model. Raises ServingError."""
        if folder.problem is not None:
            raise invalid(folder.problem)
        try:
            config = normalize(declared_config(folder, override), folder.name, folder.first_files)
            _raise_if_any(check_structure(config, folder.name))
            steps = steps_of(config)
            adapters.listed_adapters(config)
            return Prepared(folder, config, tuple(require(config, folder.versions)), config, steps)
        except ConfigError as error:
            raise invalid(str(error)) from error

    async def complete(self, polled: Prepared, completed: ModelConfig | None = None) -> Prepared:
        """Complete the configuration by the backend and the machine. Raises ServingError where it cannot be served so.

        `completed`: the configuration as the backend would complete it (`Prepared.completed_like`), if that is
        certain.
        """
        folder, config = polled.folder, polled.config
        try:
            if completed is not None:
                config = completed
            elif not polled.is_ensemble:
                config = await self._autofilled(folder, config, polled.versions[0])
            config = normalize(config, folder.name, folder.first_files, self._ordinals)
        except ConfigError as error:
            raise invalid(str(error)) from error
        rules = check_structure if polled.is_routed or polled.is_adapter else check
        _raise_if_any([*rules(config, folder.name), *check_placement(config, self._ordinals)])
        unsupported.refuse(config)
        labels = await asyncio.to_thread(_read_labels, folder.path, config)
        return replace(polled, config=config, labels=labels)

    async def _autofilled(self, folder: ModelFolder, config: ModelConfig, version: int) -> ModelConfig:
        """Complete the configuration from the first GPU's file; the default file's name stays as it was."""
        gpu = first_gpu(config, self._gpus)
        own = for_device(config, None if gpu is None else self._gpus[gpu])
        autofilled = await self._autofill(folder, own, version)
        if own is config:
            return autofilled
        completed = ModelConfig()
        completed.CopyFrom(autofilled)
        completed.default_model_filename = config.default_model_filename
        return completed

    async def _autofill(self, folder: ModelFolder, config: ModelConfig, version: int) -> ModelConfig:
        """Let the backend complete the configuration where the model's own code may run: not in this process."""
        path = folder.version_path(version)
        if not self._options.autocomplete or not await asyncio.to_thread(_needs_completion, path, config):
            return config
        with_parameters = with_settings(config, self._options.backend_settings)
        return without_settings(await self._completed(folder, with_parameters, version), config)

    async def _completed(self, folder: ModelFolder, config: ModelConfig, version: int) -> ModelConfig:
        path = folder.version_path(version)
        name, environment = f"{config.name} (autocomplete)", self._options.environment(config.backend)
        spec = InstanceSpec(config, version, folder.path, path, name, "KIND_CPU", 0, environment)
        timeout = load_timeout(config, self._options)
        if isolation(config) is Isolation.THREAD:
            return await complete_in_thread(
                spec, lambda: resolve(config.backend).complete_config(folder.path, path, config), timeout
            )
        return await ProcessInstance(spec, self._calls, timeout, lambda instance, error: None).complete()


def steps_of(config: ModelConfig) -> frozenset[str]:
    """Return the models that a model of others runs: an ensemble's steps, variants, an adapter's base model.

    Raises ConfigError.
    """
    if adapters.is_adapter(config):
        return frozenset({adapters.base_of(config)})
    if variants.is_routed(config):
        return frozenset(variant.model for variant in variants.variant_routing(config).variants)
    return frozenset(step.model_name for step in config.ensemble_scheduling.step)


def declared_config(folder: ModelFolder, override: str | None) -> ModelConfig:
    """Return the user's configuration: the override (JSON) of a load request, or config.pbtxt, or an empty one."""
    if override is not None:
        return parse_json(override)
    if folder.config_text is None:
        return ModelConfig()
    return parse_text(folder.config_text, str(folder.config_path))


def load_timeout(config: ModelConfig, options: RepositoryOptions) -> float:
    """Return the seconds that an instance may take to load.

    The parameter LOAD_TIMEOUT_SECONDS, or the server's flag.
    """
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
    """Return whether a model may complete its configuration.

    Starting a process only to learn that a Python model completes nothing would double its load time.
    """
    if config.backend != "python":
        return True
    source = version_path / config.default_model_filename
    return not source.is_file() or _may_complete(source.read_bytes())


def _may_complete(source: bytes) -> bool:
    """Return whether a model's class may have the method.

    It does not where the source is complete without it, and no import, base class or decorator can add it.
    """
    if b"auto_complete_config" in source:
        return True
    try:
        body = ast.parse(source).body
    except (SyntaxError, ValueError):
        return True
    named = [node for node in body if isinstance(node, ast.ClassDef) and node.name == "TritonPythonModel"]
    if not named:
        return bool(body)
    return any(node.bases or node.keywords or node.decorator_list for node in named)


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
