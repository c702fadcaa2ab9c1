"""The versions of a model that are served."""

from collections.abc import Collection, Iterator
from typing import Annotated, ClassVar

from pydantic import Field

from argosy.api.values.base import MAX_EXACT, ApiModel, Fault, Int, Rule

Version = Annotated[Int, Field(ge=1, le=MAX_EXACT)]


class Latest(ApiModel):
    """The highest versions."""

    num_versions: Int = Field(
        default=1, ge=1, le=2**32 - 1, description="The number of highest versions to serve. Default: 1."
    )


class All(ApiModel):
    """All versions in the model's folder."""


class Specific(ApiModel):
    """The versions that are listed."""

    versions: tuple[Version, ...] = Field(min_length=1, max_length=64, description="The versions to serve.")


def _exactly_one(policy: "VersionPolicy") -> Iterator[Fault]:
    present = [name for name in ("latest", "all", "specific") if getattr(policy, name) is not None]
    if len(present) != 1:
        actual = " and ".join(present) or "none of them"
        yield Fault(f"set exactly one of latest, all and specific; found {actual}")


def _listed_once(policy: "VersionPolicy") -> Iterator[Fault]:
    if policy.specific is None:
        return
    versions = policy.specific.versions
    for index, version in enumerate(versions):
        if version in versions[:index]:
            yield Fault(f"version {version} is listed twice; list it once", ("specific", "versions", index))


class VersionPolicy(ApiModel):
    """Which versions are served: exactly one of its members is set."""

    latest: Latest | None = Field(default=None, description="Serve the highest versions.")
    all: All | None = Field(default=None, description="Serve every version in the model's folder.")
    specific: Specific | None = Field(default=None, description="Serve the versions that are listed.")

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            ("latest", "all", "specific"),
            _exactly_one,
            cel="(has(self.latest) ? 1 : 0) + (has(self.all) ? 1 : 0) + (has(self.specific) ? 1 : 0) == 1",
            says="set exactly one of latest, all and specific",
        ),
        Rule(("specific",), _listed_once),
    )


def retained(declared: Collection[int], policy: VersionPolicy | None, loaded: Collection[int]) -> set[int]:
    """Return the versions that the policy serves in the end: those `declared`, and some of the other `loaded` ones.

    None is above the highest declared one, since servers answer requests that name no version with their highest one.
    """
    most = max(declared, default=0)
    others = sorted((version for version in set(loaded) - set(declared) if version < most), reverse=True)
    if policy is None:
        return set(declared)
    if policy.specific is not None:
        return set(declared) | (set(others) & set(policy.specific.versions))
    if policy.latest is not None:
        return {*declared, *others[: max(0, policy.latest.num_versions - len(declared))]}
    return {*declared, *others}
