"""A model repository on disk: its models, versions and files. Reads folders; parses nothing.

    <repository>/<model>/config.pbtxt                the model's configuration (optional with autofill)
    <repository>/<model>/configs/<name>.pbtxt        alternatives to it, chosen by --model-config-name
    <repository>/<model>/<version>/…                 the files of a version: 0, 1, 2 …, without leading zeros
    <repository>/<model>/<version>/argosy.pbtxt      a configuration of its own, in place of the model's
    <repository>/<model>/{warmup,initial_state}/…    data that a configuration names

Hidden entries are no models: a mounted ConfigMap has `..data` next to the real ones.
"""

import hashlib
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from argosy_runtime.errors import internal, invalid
from argosy_runtime.modelconfig.modelfiles import is_inside

CONFIG_FILE = "config.pbtxt"
VERSION_CONFIG_FILE = "argosy.pbtxt"
CONFIGS_FOLDER = "configs"
WARMUP_FOLDER = "warmup"
INITIAL_STATE_FOLDER = "initial_state"
DUPLICATE = "model appears in two or more repositories"

_NO_VERSIONS = frozenset({CONFIGS_FOLDER, WARMUP_FOLDER, INITIAL_STATE_FOLDER})
_LONGEST_NAME = 255  # bytes of a folder's name (NAME_MAX)
_MOST_DIGITS = len(str(2**63))
_IGNORED_NAMES = frozenset({"__pycache__", "4913"})
_IGNORED_ENDINGS = ("~", ".swp", ".swx", ".swo", ".tmp", ".pyc")


@dataclass(frozen=True, slots=True)
class ModelFolder:
    """One model's folder at the time of reading.

    `config_text` is None where there is no configuration file. `versions` ascend. `files` lists the direct entries
    of each version folder; a directory's name ends with "/". `fingerprint` changes with any file,
    `shared_fingerprint` with those of no version, each of `version_fingerprints` with those of one; configurations
    count in the first alone. `problem` is the reason why the model cannot be loaded, None without one. `also_in` are
    further folders of the same name. `version_configs`: the configurations that versions have of their own,
    `version_problems`: why others cannot be read.
    `version_paths`: those of versions that lie elsewhere. `declared_by`: the model that lists this one as an adapter of
    its own; empty for a model of a repository. `size`: bytes of all files together. `namespace`: the repository, where
    models of several may share a name. `renamed`: the name is not the folder's, and the configuration's gives way.
    """

    name: str
    path: Path
    config_text: str | None
    versions: tuple[int, ...]
    files: Mapping[int, tuple[str, ...]]
    fingerprint: str
    shared_fingerprint: str = ""
    version_fingerprints: Mapping[int, str] = field(default_factory=dict)
    config_path: Path | None = None
    version_configs: Mapping[int, str] = field(default_factory=dict)
    version_problems: Mapping[int, str] = field(default_factory=dict)
    problem: str | None = None
    also_in: tuple[Path, ...] = field(default=())
    version_paths: Mapping[int, Path] = field(default_factory=dict)
    declared_by: str = ""
    size: int = 0
    namespace: str = ""
    renamed: bool = False

    @property
    def identifier(self) -> str:
        """Identifier of the model among those of all repositories."""
        return identifier_of(self.namespace, self.name)

    @property
    def first_files(self) -> tuple[str, ...]:
        """Files by which autofill recognises the model: those of its configuration's first version, as names sort."""
        versions = [version for version in self.versions if version not in self.own_configs]
        return self.files[min(versions, key=str)] if versions else ()

    @property
    def own_configs(self) -> frozenset[int]:
        """Versions that have a configuration of their own, readable or not."""
        return frozenset((*self.version_configs, *self.version_problems))

    def data_folder(self, version: int, relative: str) -> Path:
        """Return the folder in which a file or folder lies that a version's configuration names.

        It is the model's, or, for a version with a configuration of its own that has it there, the version's.
        """
        own = self.version_path(version)
        return own if version in self.own_configs and (own / relative).exists() else self.path

    def version_path(self, version: int) -> Path:
        """Return the folder of a version."""
        return self.version_paths.get(version) or self.path / str(version)


def identifier_of(namespace: str, name: str) -> str:
    """Return the identifier of a model: its name, after its namespace if it has one."""
    return f"{namespace}::{name}" if namespace else name


def require_folders(repositories: Sequence[Path]) -> None:
    """Raise ServingError, in Triton's words, unless every repository is a folder."""
    for repository in repositories:
        if not repository.exists():
            raise internal(f"failed to stat file {repository}")
        if not repository.is_dir():
            raise invalid("repository path is not a valid directory")


def scan(repository: Path, config_name: str = "") -> dict[str, ModelFolder]:
    """Return every model folder of one repository, by name, sorted. `config_name` is --model-config-name.

    Raises ServingError (INTERNAL) where the repository itself cannot be read; a model that cannot be read is there
    with its `problem`.
    """
    try:
        with os.scandir(repository) as entries:
            folders = [entry.name for entry in entries if not entry.name.startswith(".") and entry.is_dir()]
    except OSError as error:
        raise internal(f"failed to open directory {repository}: {error.strerror}") from error
    return {name: read_folder(repository / name, config_name) for name in sorted(folders)}


def is_model_name(name: str) -> bool:
    """Return whether a name is one component of a path, so that its folder lies directly in a repository."""
    if name in {"", ".", ".."} or "/" in name or "\0" in name:
        return False
    return len(name.encode(errors="surrogatepass")) <= _LONGEST_NAME


def refuse_traversal(name: str) -> None:
    """Raise ServingError (INVALID_ARG), in Triton's words, for a name to load that is empty, or a path."""
    if not name.strip():
        raise invalid("Model name cannot be empty. Please enter a valid name to deploy.")
    if name.strip() == ".." or "/" in name:
        raise invalid(f"invalid model name '{name}', model name must not contain path traversal characters")


def read_folder(path: Path, config_name: str = "") -> ModelFolder:
    """Return one model folder. An error of reading becomes its `problem`."""
    try:
        entries = list(_walk(path))
        versions = _versions(path)
        files = {version: _listing(path / str(version)) for version in versions}
    except OSError as error:
        return _unreadable(path, f"failed to open directory {path}: {error.strerror}")
    config_path = _config_path(path, config_name)
    text, problem = _read_config(config_path)
    configs, problems = _read_version_configs(path, files)
    return ModelFolder(
        name=path.name,
        path=path,
        config_text=text,
        versions=versions,
        files=files,
        fingerprint=_digest(entries),
        shared_fingerprint=_digest([entry for entry in entries if _is_shared(entry.relative)]),
        version_fingerprints={v: _digest([e for e in entries if _is_of_version(e.relative, v)]) for v in versions},
        config_path=config_path,
        version_configs=configs,
        version_problems=problems,
        problem=problem,
        size=sum(entry.size for entry in entries),
    )


def inside(folder: Path, relative: str) -> Path:
    """Return a file that a configuration names, by a path inside `folder`, or a link there. Raises ServingError."""
    if not is_inside(relative):
        raise invalid(f"'{relative}' must be a path inside the model's folder")
    return folder / relative


def _unreadable(path: Path, problem: str) -> ModelFolder:
    return ModelFolder(path.name, path, None, (), {}, "", problem=problem)


def _config_path(path: Path, config_name: str) -> Path | None:
    """Return the alternative where one is named and exists, or config.pbtxt where that exists."""
    candidates = [path / CONFIG_FILE]
    if config_name:
        candidates.insert(0, path / CONFIGS_FOLDER / f"{config_name}.pbtxt")
    return next((candidate for candidate in candidates if candidate.exists()), None)


def _read_config(path: Path | None) -> tuple[str | None, str | None]:
    if path is None:
        return None, None
    try:
        # Editors on Windows put a byte order mark first, which protobuf's text format does not take.
        return path.read_text(encoding="utf-8-sig"), None
    except UnicodeDecodeError as error:
        return None, f"failed to read text proto from {path}: byte {error.start} is not UTF-8"
    except OSError as error:
        return None, f"failed to read text proto from {path}: {error.strerror}"


def _read_version_configs(path: Path, files: Mapping[int, Sequence[str]]) -> tuple[dict[int, str], dict[int, str]]:
    """Return the configurations that versions have of their own, and why those that cannot be read cannot."""
    configs: dict[int, str] = {}
    problems: dict[int, str] = {}
    for version, names in files.items():
        if VERSION_CONFIG_FILE in names:
            text, problem = _read_config(path / str(version) / VERSION_CONFIG_FILE)
            if text is not None:
                configs[version] = text
            if problem is not None:
                problems[version] = problem
    return configs, problems


def _versions(path: Path) -> tuple[int, ...]:
    with os.scandir(path) as entries:
        names = [entry.name for entry in entries if entry.name not in _NO_VERSIONS and entry.is_dir()]
    return tuple(sorted(int(name) for name in names if is_version(name)))


def is_version(name: str) -> bool:
    """Return whether a folder's name is a version's: digits of a 64-bit number, without leading zeros."""
    plain = name.isascii() and name.isdigit() and (name == "0" or not name.startswith("0"))
    return plain and len(name) <= _MOST_DIGITS and int(name) < 2**63


def _listing(path: Path) -> tuple[str, ...]:
    with os.scandir(path) as entries:
        return tuple(sorted(f"{entry.name}/" if entry.is_dir() else entry.name for entry in entries))


@dataclass(frozen=True, slots=True)
class _Entry:
    """A file or directory below a model's folder. A directory counts by its name alone."""

    relative: str
    mtime_ns: int = 0
    size: int = 0
    inode: int = 0


def _walk(root: Path) -> Iterator[_Entry]:
    seen: set[tuple[int, int]] = set()
    for folder, subfolders, names in os.walk(root, followlinks=True, onerror=_raise):
        status = os.stat(folder)
        # A link back up would be walked for ever.
        if (status.st_dev, status.st_ino) in seen:
            subfolders.clear()
            continue
        seen.add((status.st_dev, status.st_ino))
        subfolders[:] = sorted(name for name in subfolders if not _is_ignored(name))
        relative = os.path.relpath(folder, root)
        yield _Entry(f"{relative}/")
        for name in sorted(name for name in names if not _is_ignored(name)):
            yield _entry(os.path.join(folder, name), os.path.normpath(os.path.join(relative, name)))


def _raise(error: OSError) -> None:
    raise error


def _entry(path: str, relative: str) -> _Entry:
    try:
        status = os.stat(path)
    except FileNotFoundError:
        # A dangling link, or a file just removed: there by name, and a change once it appears.
        return _Entry(relative)
    return _Entry(relative, status.st_mtime_ns, status.st_size, status.st_ino)


def _is_ignored(name: str) -> bool:
    return (
        name.startswith(".")
        or name in _IGNORED_NAMES
        or name.endswith(_IGNORED_ENDINGS)
        or (name.startswith("#") and name.endswith("#"))
    )


def _is_config(relative: str) -> bool:
    return relative == CONFIG_FILE or _first(relative) == CONFIGS_FOLDER


def _is_shared(relative: str) -> bool:
    return not _is_config(relative) and not is_version(_first(relative))


def _is_of_version(relative: str, version: int) -> bool:
    """Return whether an entry is one of a version's files; a configuration of its own is none."""
    return _first(relative) == str(version) and relative != f"{version}/{VERSION_CONFIG_FILE}"


def _first(relative: str) -> str:
    return relative.split("/", 1)[0]


def _digest(entries: Sequence[_Entry]) -> str:
    """Return names, times, sizes and inodes as one text. Entries that `_walk` skips do not count."""
    digest = hashlib.sha256()
    for entry in sorted(entries, key=lambda entry: entry.relative):
        digest.update(repr((entry.relative, entry.mtime_ns, entry.size, entry.inode)).encode())
    return digest.hexdigest()
