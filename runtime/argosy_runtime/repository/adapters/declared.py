"""Adapters that a model lists itself, as folders of models: what the repository would have for each of them.

They are read from the files of the version that serves, so that their paths may be relative to its folder. An alias is
a routed model of the adapters that share it.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from argosy_runtime.backends.parameters import declared_adapters
from argosy_runtime.modelconfig.parameters import adapters, variants
from argosy_runtime.modelconfig.parameters.adapters import DeclaredAdapter
from argosy_runtime.repository.folders.layout import ModelFolder
from argosy_runtime.repository.preparing import PreparedModel

_VERSION = 1


def folders_of(model: PreparedModel) -> dict[str, ModelFolder]:
    """Return a folder for each adapter that a model lists, and for each alias of them, adapters first, by identifier.

    Blocks on the disk. Raises ServingError (INVALID_ARG) for a list that cannot be read.
    """
    prepared = model.latest
    if prepared.is_ensemble:
        return {}
    base, version_dir = prepared.config.name, prepared.folder.version_path(prepared.versions[-1])
    listed = declared_adapters(prepared.config, version_dir)
    folders = {adapter.name: _adapter(base, adapter) for adapter in listed}
    for alias, shared in adapters.aliases(listed).items():
        folders.setdefault(alias, _alias(base, alias, shared, prepared.folder.path))
    named = [
        replace(f, namespace=model.folder.namespace, declared_by=model.folder.identifier) for f in folders.values()
    ]
    return {folder.identifier: folder for folder in named}


def _adapter(base: str, adapter: DeclaredAdapter) -> ModelFolder:
    return _folder(base, adapter.name, adapters.config_text(base), Path(adapter.path))


def _alias(base: str, alias: str, shared: Sequence[DeclaredAdapter], path: Path) -> ModelFolder:
    members = tuple(variants.Variant(adapter.name, weight=adapter.share) for adapter in shared)
    return _folder(base, alias, variants.config_text(variants.VariantRouting(members)), path)


def _folder(base: str, name: str, text: str, path: Path) -> ModelFolder:
    fingerprint = hashlib.sha256(f"{path}\n{text}".encode()).hexdigest()
    return ModelFolder(
        name, path, text, (_VERSION,), {_VERSION: ()}, fingerprint, version_paths={_VERSION: path}, declared_by=base
    )
