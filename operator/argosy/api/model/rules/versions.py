"""Rules of a model's versions: one by the short fields, or a list of versions that are served at once."""

from collections.abc import Iterator

from argosy.api.model.modelfields import InferenceModelFields
from argosy.api.values.base import Fault, Rule


def _short_fields_or_versions(spec: InferenceModelFields) -> Iterator[Fault]:
    for field, value in (("version", spec.version), ("storageUri", spec.storage_uri), ("digest", spec.digest)):
        if spec.versions and value is not None:
            yield Fault("versions has it for each version; leave it out, or leave out versions", (field,))
        elif not spec.versions and value is None and field != "digest":
            yield Fault("is required, unless versions lists several", (field,))


def _listed_once(spec: InferenceModelFields) -> Iterator[Fault]:
    seen: set[int] = set()
    for index, files in enumerate(spec.versions):
        if files.version in seen:
            yield Fault(f"version {files.version} is listed twice; list it once", ("versions", index, "version"))
        seen.add(files.version)


def _policy_serves_all(spec: InferenceModelFields) -> Iterator[Fault]:
    policy, versions = spec.version_policy, list(spec.declared)
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
