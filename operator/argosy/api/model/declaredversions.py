"""The versions of a model: one by the short fields, or a list of versions that are served at once."""

from collections.abc import Iterator
from typing import Any, Protocol

from pydantic import Field

from argosy.api.values.base import ApiModel, Fault, Rule
from argosy.api.values.storage import Digest, StorageUri
from argosy.api.values.versions import Version, VersionPolicy

BY_VERSION: dict[str, Any] = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["version"]}
"""The schema's words for a list whose entries are told apart by their versions."""
MAX_VERSIONS = 64


class VersionFiles(ApiModel):
    """A version and its files."""

    version: Version = Field(description="The version, 1 or more.")
    storage_uri: StorageUri = Field(description="Where its files are, as in spec.storageUri.")
    digest: Digest | None = Field(default=None, description="Its files' digest. Default: not checked.")


class Versioned(Protocol):
    """A spec that declares versions."""

    version: Version | None
    storage_uri: StorageUri | None
    digest: Digest | None
    versions: tuple[VersionFiles, ...]
    version_policy: VersionPolicy | None


def declared(spec: Versioned) -> dict[int, VersionFiles]:
    """Return every declared version and its files, lowest first."""
    if spec.versions:
        return {files.version: files for files in sorted(spec.versions, key=lambda files: files.version)}
    if spec.version is None or spec.storage_uri is None:
        return {}
    files = VersionFiles.model_construct(version=spec.version, storage_uri=spec.storage_uri, digest=spec.digest)
    return {spec.version: files}


def declared_versions(spec: Versioned) -> tuple[int, ...]:
    """Return every declared version, lowest first."""
    if spec.versions:
        return tuple(sorted(files.version for files in spec.versions))
    return () if spec.version is None else (spec.version,)


def _short_fields_or_versions(spec: Versioned) -> Iterator[Fault]:
    for field, value in (("version", spec.version), ("storageUri", spec.storage_uri), ("digest", spec.digest)):
        if spec.versions and value is not None:
            yield Fault("versions has it for each version; leave it out, or leave out versions", (field,))
        elif not spec.versions and value is None and field != "digest":
            yield Fault("is required, unless versions lists several", (field,))


def _listed_once(spec: Versioned) -> Iterator[Fault]:
    seen: set[int] = set()
    for index, files in enumerate(spec.versions):
        if files.version in seen:
            yield Fault(f"version {files.version} is listed twice; list it once", ("versions", index, "version"))
        seen.add(files.version)


def _policy_serves_all(spec: Versioned) -> Iterator[Fault]:
    policy, versions = spec.version_policy, list(declared(spec))
    if policy is None:
        return
    if policy.specific is not None:
        for version in versions:
            if version not in policy.specific.versions:
                field = "spec.versions has" if spec.versions else "spec.version"
                yield Fault(
                    f"does not list {field} {version}, which would not be served; add it",
                    ("versionPolicy", "specific", "versions"),
                )
    if policy.latest is not None and policy.latest.num_versions < len(versions):
        yield Fault(
            f"is {policy.latest.num_versions}, and versions lists {len(versions)}, which are all served; "
            "raise it, or leave out versionPolicy",
            ("versionPolicy", "latest", "numVersions"),
        )


VERSION_RULES = (
    Rule(
        ("version", "storage_uri", "digest", "versions"),
        _short_fields_or_versions,
        cel="has(self.versions) && size(self.versions) > 0 ? !has(self.version) && !has(self.storageUri) && "
        "!has(self.digest) : has(self.version) && has(self.storageUri)",
        says="set either version and storageUri, or versions",
    ),
    Rule(("versions",), _listed_once),
    Rule(
        ("version", "storage_uri", "digest", "versions", "version_policy"),
        _policy_serves_all,
        cel="!has(self.versionPolicy) || !has(self.versionPolicy.specific) || "
        "(has(self.version) ? self.version in self.versionPolicy.specific.versions : !has(self.versions) || "
        "self.versions.all(each, each.version in self.versionPolicy.specific.versions))",
        says="versionPolicy.specific.versions must list every declared version",
    ),
)
