"""The builder's command line."""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from argosy_agent.contract.documents import ConfigMapName
from argosy_agent.flags import SERVICE_ACCOUNT, configmap, folder


@dataclass(frozen=True, slots=True)
class Flags:
    """Everything the command line says. One of `report_configmap` and `report_file` is given; `pod` is a UID or empty.

    `timeout_s` is 0 where the caller ends a build that takes too long.
    """

    request: Path
    workspace: Path
    report_configmap: ConfigMapName | None
    report_file: Path | None
    credentials: Path
    pvc_root: Path
    secrets: Path
    secrets_root: Path
    allowed_folders: list[Path]
    pod: str
    timeout_s: float
    log: str


def parse(arguments: Sequence[str]) -> Flags:
    """Read a command line; argparse ends the process with a message where it is wrong."""
    parser = _parser()
    return Flags(**vars(parser.parse_args(arguments)))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="argosy_builder", description="Build one engine, and keep it in the store.", allow_abbrev=False
    )
    add = parser.add_argument
    add("--request", type=Path, required=True, metavar="FILE", help="what is to be built: request.json")
    add("--workspace", type=Path, required=True, metavar="DIR", help="where it works; what is finished stays there")
    report = parser.add_mutually_exclusive_group(required=True)
    report.add_argument(
        "--report-configmap", type=configmap, metavar="NAMESPACE/NAME", help="the ConfigMap that gets the report"
    )
    report.add_argument("--report-file", type=Path, metavar="FILE", help="what gets the report, outside of a cluster")
    add("--credentials", type=Path, default=SERVICE_ACCOUNT, help="the folder with the API server's token and ca.crt")
    add("--pvc-root", type=Path, default=Path("/pvc"), help="where claims are mounted, each by its name")
    add("--secrets", type=Path, default=Path("/secrets/storage"), help="where the pool's storage Secret is mounted")
    add("--secrets-root", type=Path, default=Path("/secrets/named"), help="where models' own Secrets are, by name")
    add(
        "--allowed-folder",
        dest="allowed_folders",
        type=folder,
        action="append",
        default=[],
        metavar="DIR",
        help="a folder that file: may name, with all beneath it; as often as needed; without one file: is refused",
    )
    add("--pod", default="", metavar="UID", help="the Pod that this is")
    add("--timeout", dest="timeout_s", type=float, default=0.0, metavar="SECONDS", help="end after so long; 0: never")
    add("--log", choices=("debug", "info", "warning", "error"), default="info", help="what is logged")
    return parser
