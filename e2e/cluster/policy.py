"""How far the tests go for a program that this machine lacks: pure decisions, made from what the machine is."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import Self

HOW_TO_RUN = "CI=true brings what is missing, or fails: CI=true make test"


class Source(StrEnum):
    """Where Kubernetes' own programs come from."""

    ASSETS = "KUBEBUILDER_ASSETS"
    CACHE = "cache"
    TARBALL = "tarball"
    UPSTREAM = "upstream"
    DEBIAN = "Debian's sources"


class Verdict(Enum):
    """What becomes of tests whose program could not be brought."""

    SKIP = "skip"
    FAIL = "fail"


@dataclass(frozen=True, slots=True)
class Machine:
    """`ci`: nothing may be skipped. `build`: ten minutes of building were asked for. `assets`: a folder was named."""

    ci: bool
    root: bool
    build: bool
    assets: bool

    @classmethod
    def here(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """Return this machine: CI=true, ARGOSY_KUBE_BUILD=1, KUBEBUILDER_ASSETS, and the user that runs the tests."""
        return cls(
            ci=environment.get("CI") == "true",
            root=os.geteuid() == 0,
            build=environment.get("ARGOSY_KUBE_BUILD") == "1",
            assets=bool(environment.get("KUBEBUILDER_ASSETS")),
        )


def sources(machine: Machine, *, node: bool) -> tuple[Source, ...]:
    """Return the sources to search, in order. `node`: kubelet and kube-proxy too, of which upstream's do not fit such a
    node.

    Debian's sources are built where that was requested and where the tests may not be skipped.
    """
    named = (Source.ASSETS,) if machine.assets else ()
    upstream = () if node else (Source.UPSTREAM,)
    built = (Source.DEBIAN,) if machine.build or machine.ci else ()
    return (*named, Source.CACHE, Source.TARBALL, *upstream, *built)


def verdict(machine: Machine, reason: str, *, may_be_brought: bool = True) -> tuple[Verdict, str]:
    """Return what becomes of tests that lack something for this reason, and the one line that is printed."""
    line = " ".join(reason.split())
    if machine.ci:
        return Verdict.FAIL, f"CI=true skips nothing: {line}"
    if may_be_brought:
        line = f"{line} ({HOW_TO_RUN}{'' if machine.root else ', as root'})"
    return Verdict.SKIP, line
