"""The agent's command line."""

import argparse
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

from argosy_agent.contract.documents import ConfigMapName
from argosy_agent.contract.fields import DocumentError, file_name
from argosy_common.idle import IdlePeriod, seconds

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where a Pod's token and the API server's certificate authority are."""
LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"
UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15} | {
    f"{letter}i": 2 ** (10 * power) for power, letter in enumerate("KMGTP", 1)
}
"""The suffixes of a Kubernetes quantity, in bytes."""


@dataclass(frozen=True, slots=True)
class ConfigMaps:
    """The ConfigMaps of the desired repository and of the state. `credentials` is a folder."""

    desired: ConfigMapName
    state: ConfigMapName
    credentials: Path


@dataclass(frozen=True, slots=True)
class Files:
    """The file that says what is desired and the one that gets the state."""

    desired: Path
    state: Path


@dataclass(frozen=True, slots=True)
class Flags:
    """Everything the command line says. `cache_size` is in bytes, None for no bound; `pod` is a UID or empty;
    `control_token` is the file of --control-token-file.
    """

    server: str
    folder: Path
    cache: Path
    cache_size: int | None
    documents: ConfigMaps | Files
    pod: str
    pvc_root: Path
    secrets_root: Path
    allowed_folders: tuple[Path, ...]
    storage_identity: str
    control_token: Path | None
    idle: IdlePeriod
    log: str


def parse(arguments: Sequence[str]) -> Flags:
    """Read a command line; argparse ends the process with a message where it is wrong."""
    parser = _parser()
    options = parser.parse_args(arguments)
    return Flags(
        server=options.server,
        folder=options.folder,
        cache=options.cache or options.folder / "cache",
        cache_size=options.cache_size,
        documents=documents_of(parser, options, "desired"),
        pod=options.pod,
        pvc_root=options.pvc_root,
        secrets_root=options.secrets_root,
        allowed_folders=tuple(options.allowed_folder),
        storage_identity=options.storage_identity,
        control_token=options.control_token_file,
        idle=IdlePeriod(options.drain_quiet_secs, options.drain_timeout_secs),
        log=options.log,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="argosy_agent", description="Bring a server's models to what they should be.", allow_abbrev=False
    )
    add = parser.add_argument
    add("--server", type=_url, required=True, help="the server's HTTP endpoint, as http://127.0.0.1:8000")
    add("--folder", type=Path, required=True, help="a folder that the server shares; its repository/ is the server's")
    add("--cache", type=Path, help="where copies of model files are kept; on --folder's disk they take no space twice")
    add("--cache-size", type=quantity, help="how large the cache may get, as 200Gi; what is served is never dropped")
    add("--configmap", type=configmap, metavar="NAMESPACE/NAME", help="the ConfigMap with the desired repository")
    add("--state", type=configmap, metavar="NAMESPACE/NAME", help="the ConfigMap that gets the state")
    add("--credentials", type=Path, default=SERVICE_ACCOUNT, help="the folder with the API server's token and ca.crt")
    add("--desired", type=Path, metavar="FILE", help="the desired repository, instead of --configmap")
    add("--state-file", type=Path, metavar="FILE", help="what gets the state, instead of --state")
    add("--pod", default="", metavar="UID", help="the Pod that this is part of")
    add("--pvc-root", type=Path, default=Path("/pvc"), help="where claims are mounted, each by its name")
    idle_help = "unload a model once no request has come for so long; 0 unloads at once"
    add("--drain-quiet-secs", type=seconds, default=0.0, help=idle_help)
    add("--drain-timeout-secs", type=seconds, default=60.0, help="for how long at most, if requests go on coming")
    add("--secrets-root", type=Path, default=Path("/secrets/named"), help="where models' own Secrets are, by name")
    add(
        "--allowed-folder",
        type=folder,
        action="append",
        default=[],
        metavar="DIR",
        help="a folder that file: may name, with all beneath it; as often as needed; without one file: is refused",
    )
    identity = "whose credentials the environment has; copies in a shared cache that others fetched are not used"
    add("--storage-identity", default="", metavar="NAME", help=identity)
    token = "the token that opens the server's control, where it was started with the same flag"
    add("--control-token-file", type=Path, metavar="FILE", help=token)
    add("--log", choices=("debug", "info", "warning", "error"), default="info", help="what is logged")
    return parser


def documents_of(parser: argparse.ArgumentParser, options: argparse.Namespace, desired: str) -> ConfigMaps | Files:
    """Return the ConfigMaps, or the files, of the desired repository and the state.

    `desired` is the flag of the file of the desired repository, such as `desired` for `--desired`.
    """
    maps, files = (options.configmap, options.state), (getattr(options, desired), options.state_file)
    if all(maps) and not any(files):
        return ConfigMaps(*maps, options.credentials)
    if any(maps) or not all(files):
        parser.error(f"give either --configmap and --state, or --{desired} and --state-file")
    for flag, path in zip((desired, "state-file"), files, strict=True):
        if not path.parent.is_dir():
            parser.error(f"argument --{flag}: there is no folder {path.parent}")
    return Files(*files)


def quantity(words: str) -> int:
    """Return bytes as Kubernetes writes them: 1500000000, 1.5G, 200Gi."""
    match = re.fullmatch(r"(\d+(?:\.\d+)?)([A-Za-z]*)", words)
    if match is None or match[2] not in UNITS:
        units = ", ".join(filter(None, UNITS))
        raise argparse.ArgumentTypeError(f"{words!r} is no amount of bytes: give a number, with one of {units} or none")
    return int(float(match[1]) * UNITS[match[2]]) if "." in match[1] else int(match[1]) * UNITS[match[2]]


def folder(words: str) -> Path:
    """Return an absolute path of a folder."""
    path = Path(words)
    if not path.is_absolute() or ".." in path.parts:
        raise argparse.ArgumentTypeError(f"{words!r} is no absolute path of a folder, as /mnt/models")
    return path


def _url(words: str) -> str:
    parts = urlsplit(words)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise argparse.ArgumentTypeError(f"{words!r} is no URL of a server, as http://127.0.0.1:8000")
    return words.rstrip("/")


def configmap(words: str) -> ConfigMapName:
    """Return a namespace and a name, as NAMESPACE/NAME."""
    namespace, _, name = words.partition("/")
    try:
        return ConfigMapName(file_name(namespace, "namespace"), file_name(name, "name"))
    except DocumentError:
        raise argparse.ArgumentTypeError(f"{words!r} is not NAMESPACE/NAME") from None
