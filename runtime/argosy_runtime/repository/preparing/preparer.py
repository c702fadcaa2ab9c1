"""Preparation of models: their configurations checked, and completed by the backend and the machine."""

import ast
import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tritonclient.grpc.model_config_pb2 import ModelConfig

from argosy_runtime.backends import isolation, resolve
from argosy_runtime.backends.contract import InstanceSpec, Isolation
from argosy_runtime.errors import ServingError, invalid
from argosy_runtime.execution.calls.server import ServerCalls
from argosy_runtime.execution.completing import complete_in_thread
from argosy_runtime.execution.process.instance import ProcessInstance
from argosy_runtime.modelconfig import ConfigError, check, check_structure, normalize
from argosy_runtime.modelconfig.modelfiles import first_gpu, for_device
from argosy_runtime.modelconfig.parameters import adapters
from argosy_runtime.modelconfig.rules import check_placement
from argosy_runtime.modelconfig.versions import none_available, select
from argosy_runtime.repository import unsupported
from argosy_runtime.repository.folders.layout import CONFIG_FILE, ModelFolder
from argosy_runtime.repository.options import RepositoryOptions, with_settings, without_settings
from argosy_runtime.repository.preparing.features import Features

from .agents import has_agents, run_agents
from .declared import deciding_part, declared_config, declared_version, load_timeout, selected, steps_of
from .labels import read_labels
from .prepared import NoVersionError, Prepared, PreparedModel

_NO_FEATURES = Features()


class Preparer:
    """Preparation of models for one machine. `gpus` are the usable ones: ordinal to compute capability."""

    def __init__(
        self,
        options: RepositoryOptions,
        gpus: Mapping[int, str],
        calls: ServerCalls,
        features: Features = _NO_FEATURES,
    ) -> None:
        self._options = options
        self._gpus = gpus
        self._ordinals = tuple(gpus)
        self._calls = calls
        self._features = features

    def poll(self, folder: ModelFolder, override: str | None = None) -> PreparedModel:
        """Return what is certain without opening the model. Raises ServingError.

        A version whose own configuration cannot be used is among the result's `broken`.
        """
        if folder.problem is not None:
            raise invalid(folder.problem)
        if not self._options.autocomplete and override is None and _is_without_config(folder):
            raise invalid(f"{folder.path / CONFIG_FILE} is missing, and configurations are not completed")
        try:
            declared = declared_config(folder, override)
            shared = tuple(v for v in selected(folder, declared) if v not in folder.own_configs)
            if shared or not selected(folder, declared):
                model = _polled(folder, declared, shared)
                if not select(model.config.version_policy, folder.versions):
                    raise NoVersionError(none_available(folder.name))
                return _with_own(PreparedModel(folder, model.config, dict.fromkeys(shared, model)))
            return _with_own(PreparedModel(folder, deciding_part(declared, folder.name), {}))
        except ConfigError as error:
            raise invalid(str(error)) from error

    async def run_agents(self, polled: PreparedModel, former: PreparedModel | None) -> None:
        """Run the repository agents of a model, unless they ran for what serves. Raises ServingError.

        `former` is what the serving versions were prepared as.
        """
        same = former is not None and former.folder == polled.folder
        ran = [one.declared for one in former.configurations] if same and former is not None else []
        for one in polled.configurations:
            if has_agents(one.declared) and one.declared not in ran:
                await asyncio.to_thread(run_agents, polled.folder, one.declared)

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
            config = normalize(config, folder.name, polled.first_files, self._ordinals)
        except ConfigError as error:
            raise invalid(str(error)) from error
        rules = check_structure if polled.is_routed or polled.is_adapter else check
        _raise_if_any([*rules(config, folder.name), *check_placement(config, self._ordinals)])
        unsupported.refuse(config)
        labels = await asyncio.to_thread(read_labels, folder, polled.versions[0], config)
        return replace(polled, config=config, labels=labels, features=self._features)

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
        required = self._options.requirements
        spec = InstanceSpec(config, version, folder.path, path, name, "KIND_CPU", 0, environment, requirements=required)
        timeout = load_timeout(config, self._options)
        if isolation(config) is Isolation.THREAD:
            return await complete_in_thread(
                spec, lambda: resolve(config.backend).complete_config(folder.path, path, config), timeout
            )
        return await ProcessInstance(spec, self._calls, timeout, lambda instance, error: None).complete()


def _is_without_config(folder: ModelFolder) -> bool:
    return folder.config_text is None and not folder.own_configs and not folder.declared_by


def _polled(folder: ModelFolder, declared: ModelConfig, versions: tuple[int, ...]) -> Prepared:
    """Return a configuration as far as it is certain without opening the model. Raises ConfigError, ServingError."""
    files = Prepared(folder, declared, versions, declared).first_files
    config = normalize(declared, folder.name, files)
    _raise_if_any(check_structure(config, folder.name))
    steps = steps_of(config)
    adapters.listed_adapters(config)
    return Prepared(folder, config, versions, config, steps)


def _with_own(model: PreparedModel) -> PreparedModel:
    """Return a model together with the versions that have a configuration of their own."""
    folder, versions, broken = model.folder, dict(model.versions), dict[int, ServingError]()
    for version in selected(folder, model.config):
        if version in folder.own_configs:
            try:
                versions[version] = _polled(folder, declared_version(folder, version, model.config), (version,))
            except ConfigError as error:
                broken[version] = invalid(str(error))
            except ServingError as error:
                broken[version] = error
    return replace(model, versions=dict(sorted(versions.items())), broken=broken)


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
