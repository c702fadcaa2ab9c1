"""Rules of where a model comes from and which versions of it are served."""

from typing import Any

from tests.operator.api.rules.case import Case

SEVERAL = [{"version": 1, "storageUri": "s3://b/1"}, {"version": 2, "storageUri": "s3://b/2"}]


def several(versions: list[dict[str, Any]]) -> dict[str, Any]:
    """Return changes that declare these versions in place of the one."""
    return {"version": ..., "storageUri": ..., "digest": ..., "versions": versions}


VERSIONS: list[Case] = [
    ({"poolRef": ...}, "spec.poolRef", "is required"),
    ({"poolRef.name": "Not_DNS"}, "spec.poolRef.name", "is not a DNS name"),
    ({"poolRef.name": "a" * 254}, "spec.poolRef.name", "at most 253"),
    ({"modelName": ""}, "spec.modelName", "1 or more characters"),
    *(
        ({"modelName": name}, "spec.modelName", "is not a model's name: letters, digits")
        for name in ("a/b", ".hidden", "..", "a b", "a%20b", "a\nb", "ü")
    ),
    ({"pool_ref": "gpus"}, "spec.pool_ref", "did you mean 'poolRef'?"),
    ({"modelFormat.name": "torch"}, "spec.modelFormat.name", "did you mean 'pytorch'?"),
    ({"modelFormat.name": "excel"}, "spec.modelFormat.name", "known: onnx, pytorch, python, huggingface"),
    ({"version": 0}, "spec.version", "must be 1 or more"),
    ({"version": "2"}, "spec.version", "expected a whole number; found '2'"),
    ({"version": 2.5}, "spec.version", "expected a whole number"),
    ({"version": True}, "spec.version", "expected a whole number"),
    ({"storageUri": "ftp://x/y"}, "spec.storageUri", "does not begin with one of s3:, gs:, az:, abfss:, hf:"),
    ({"storageUri": "s3:/bucket"}, "spec.storageUri", "write it like s3://bucket"),
    ({"storageUri": "file:"}, "spec.storageUri", "names no path"),
    ({"storageUri": "abfss://account.dfs.core.windows.net/m"}, "spec.storageUri", "names no container of an account"),
    ({"storage": {"secretName": "Mine"}}, "spec.storage.secretName", "is not a DNS name"),
    *(
        ({"storageUri": f"pvc://{claim}/model"}, "spec.storageUri", "a PersistentVolumeClaim's name has only")
        for claim in ("Claim", "a:b", "a" * 254, "..", "a-", "a?b")
    ),
    ({"digest": "sha256:12"}, "spec.digest", "64 lower-case hexadecimal digits"),
    ({"versionPolicy": {}}, "spec.versionPolicy", "exactly one of latest, all and specific; found none"),
    ({"versionPolicy.all": {}}, "spec.versionPolicy", "found all and specific"),
    ({"versionPolicy.specific.versions": [1, 2, 1]}, "spec.versionPolicy.specific.versions[2]", "listed twice"),
    ({"versionPolicy.specific.versions": [1]}, "spec.versionPolicy.specific.versions", "spec.version 2"),
    ({"version": ...}, "spec.version", "is required, unless versions lists several"),
    ({"storageUri": ...}, "spec.storageUri", "is required, unless versions lists several"),
    ({"versions": SEVERAL}, "spec.version", "versions has it for each version"),
    ({"versions": SEVERAL}, "spec.storageUri", "versions has it for each version"),
    ({"versions": SEVERAL}, "spec.digest", "versions has it for each version"),
    (several([*SEVERAL, SEVERAL[0]]), "spec.versions[2].version", "version 1 is listed twice"),
    (several([{"version": 1}]), "spec.versions[0].storageUri", "is required"),
    (several([{"version": 1, "storageUri": "ftp://x"}]), "spec.versions[0].storageUri", "does not begin with one of"),
    (several([*SEVERAL, {"version": 9, "storageUri": "s3://b/9"}]), "spec.versionPolicy.specific.versions", "has 9"),
    (
        several(SEVERAL) | {"versionPolicy": {"latest": {"numVersions": 1}}},
        "spec.versionPolicy.latest.numVersions",
        "is 1, and versions lists 2",
    ),
    ({"versionPolicy": {"latest": {"numVersions": 0}}}, "spec.versionPolicy.latest.numVersions", "1 or more"),
]
