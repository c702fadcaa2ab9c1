"""A Pod's volumes, and where each container sees them."""

from collections.abc import Iterable, Mapping
from typing import Any

from argosy.api.pool.openai import KEYS_FLAG, ApiKeys
from argosy.api.pool.podtemplate import OPENAI_KEYS
from argosy.api.servingpool import ServingPool
from argosy.render.names import secret_volume_name, volume_name
from argosy.render.workloads.pods import control
from argosy_agent.contract import RenderedRepository
from argosy_common.quantity import format_bytes

MODELS = "/models"
"""The agent's folder: the repository, and next to it, for hard links, the cache."""
REPOSITORY_FOLDER = "repository"
REPOSITORY = f"{MODELS}/{REPOSITORY_FOLDER}"
CACHE = f"{MODELS}/cache"
CLAIMED_CACHE = "/cache"
"""Where a cache that servers share is mounted."""
CLAIMS = "/pvc"
"""Below it each claim that a storageUri names, by the claim's name."""
STORAGE_SECRET = "/secrets/storage"
NAMED_SECRETS = "/secrets/named"
"""Below it each Secret that a model names, by the Secret's name."""
OPENAI_KEYS_FOLDER = "/secrets/openai-api-keys"
"""Where the server reads the keys of OpenAI's API."""
TOKEN = "/var/run/secrets/kubernetes.io/serviceaccount"
"""Where clients of the API look for a token by themselves."""
TEMPORARY = "/tmp"

_MODELS, _CACHE, _SECRET, _TOKEN = "models", "model-cache", "storage-secret", "token"
_SERVER_TMP, _AGENT_TMP = "server-tmp", "agent-tmp"
_PVC = "pvc://"
_TOKEN_S = 3607
"""Seconds that a token holds; the kubelet brings a new one in time."""
_CACHE_SLACK = 2
"""An archive and what it held stand side by side for a moment, so the volume is larger than the cache may grow."""
_DECIMAL = ((18, "E"), (15, "P"), (12, "T"), (9, "G"), (6, "M"), (3, "k"))

Volume = dict[str, Any]
Mount = dict[str, Any]


def claims(repository: RenderedRepository) -> tuple[str, ...]:
    """Return the PersistentVolumeClaims that the repository's files come from, by name."""
    return claims_of(source.uri for model in repository.models for source in model.versions.values())


def claims_of(uris: Iterable[str]) -> tuple[str, ...]:
    """Return the PersistentVolumeClaims that these URIs name, each once."""
    return tuple(sorted({uri.removeprefix(_PVC).partition("/")[0] for uri in uris if uri.startswith(_PVC)}))


def claim_path(claim: str) -> str:
    """Return where the agent finds a PersistentVolumeClaim's files."""
    return f"{CLAIMS}/{claim}"


def secret_path(secret: str) -> str:
    """Return where the agent finds the Secret of a model."""
    return f"{NAMED_SECRETS}/{secret}"


def secrets(repository: RenderedRepository) -> tuple[str, ...]:
    """Return the Secrets with which the repository's files are read, in addition to the pool's, by name."""
    named = {source.secret for model in repository.models for source in model.versions.values()}
    return tuple(sorted(named - {""}))


def volumes(pool: ServingPool, repository: RenderedRepository) -> list[Volume]:
    """Return all volumes of a server's Pod."""
    storage = pool.spec.storage
    every = [_models(pool), {"name": _SERVER_TMP, "emptyDir": {}}, {"name": _AGENT_TMP, "emptyDir": {}}, token_volume()]
    every.append(control.token_volume())
    if storage.model_cache.claim_name:
        every.append(claim_volume(_CACHE, storage.model_cache.claim_name))
    every += storage_secret_volumes(storage.secret_name)
    every += _api_key_volumes(pool.spec.openai.api_keys)
    every += [secret_volume(secret_volume_name(secret), secret) for secret in secrets(repository)]
    return every + [claim_volume(volume_name(claim), claim, read_only=True) for claim in claims(repository)]


def server_mounts(pool: ServingPool) -> list[Mount]:
    """Return what the server sees: of the models only the repository, which it cannot change, and its API's keys.

    Its files are those of the cache, under other names. As a sub-path the folder is there before either container
    starts.
    """
    repository = {**mount(_MODELS, REPOSITORY, read_only=True), "subPath": REPOSITORY_FOLDER}
    keys = [mount(OPENAI_KEYS, OPENAI_KEYS_FOLDER, read_only=True)] if pool.spec.openai.api_keys else []
    return [repository, mount(_SERVER_TMP, TEMPORARY), control.token_mount(), *keys]


def api_key_flags(keys: ApiKeys | None) -> list[str]:
    """Return the flag by which a server requires the keys in that file."""
    return [f"{KEYS_FLAG}={OPENAI_KEYS_FOLDER}/{keys.key}"] if keys else []


def agent_mounts(pool: ServingPool, repository: RenderedRepository) -> list[Mount]:
    """Return what the agent sees: repository, cache, claims, credentials."""
    mounts = [
        mount(_MODELS, MODELS),
        mount(_AGENT_TMP, TEMPORARY),
        token_mount(),
        control.token_mount(),
    ]
    if pool.spec.storage.model_cache.claim_name:
        mounts.append(mount(_CACHE, CLAIMED_CACHE))
    mounts += storage_secret_mounts(pool.spec.storage.secret_name)
    named = [(secret_volume_name(secret), secret_path(secret)) for secret in secrets(repository)]
    claimed = [(volume_name(claim), claim_path(claim)) for claim in claims(repository)]
    return mounts + [mount(name, path, read_only=True) for name, path in (*named, *claimed)]


def _models(pool: ServingPool) -> Volume:
    cache = pool.spec.storage.model_cache
    empty: dict[str, str] = {}
    if cache.size_limit is not None and not cache.claim_name:
        empty["sizeLimit"] = amount(cache.size_limit * _CACHE_SLACK)
    return {"name": _MODELS, "emptyDir": empty}


def storage_secret_volumes(name: str | None) -> list[Volume]:
    """Return the volume with the Secret of the storage, where one is named: the servers', or the builds'."""
    return [{"name": _SECRET, "secret": {"secretName": name}}] if name else []


def storage_secret_mounts(name: str | None) -> list[Mount]:
    """Return the mount of that volume."""
    return [mount(_SECRET, STORAGE_SECRET, read_only=True)] if name else []


def _api_key_volumes(keys: ApiKeys | None) -> list[Volume]:
    """Return the volume with the keys of OpenAI's API; without the Secret the Pod does not start, and is not open."""
    if keys is None:
        return []
    items = [{"key": keys.key, "path": keys.key}]
    return [{"name": OPENAI_KEYS, "secret": {"secretName": keys.secret_name, "items": items}}]


def claim_volume(name: str, claim: str, *, read_only: bool = False) -> Volume:
    """Return the volume of a PersistentVolumeClaim."""
    source: Mapping[str, Any] = {"claimName": claim, "readOnly": True} if read_only else {"claimName": claim}
    return {"name": name, "persistentVolumeClaim": dict(source)}


def secret_volume(name: str, secret: str) -> Volume:
    """Return the volume of a model's Secret. Without it the Pod starts, and its model reports that it is missing."""
    return {"name": name, "secret": {"secretName": secret, "optional": True}}


def mount(name: str, path: str, *, read_only: bool = False) -> Mount:
    """Return the mount of a volume in a container."""
    writable: Mount = {"name": name, "mountPath": path}
    return {**writable, "readOnly": True} if read_only else writable


def token_mount() -> Mount:
    """Return the mount of the token where clients of the API look for it."""
    return mount(_TOKEN, TOKEN, read_only=True)


def token_volume() -> Volume:
    """Return the volume that the kubelet would mount into every container, for the one that asks the API server."""
    sources = [
        {"serviceAccountToken": {"expirationSeconds": _TOKEN_S, "path": "token"}},
        {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
        {
            "downwardAPI": {
                "items": [
                    {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}},
                ]
            }
        },
    ]
    return {"name": _TOKEN, "projected": {"sources": sources}}


def amount(size: int) -> str:
    """Return bytes as the API server gives them back, so that an object compares as it was applied: `16Gi`, `500M`."""
    text = format_bytes(size)
    if not text.isdecimal():
        return text
    zeros, suffix = next(((zeros, suffix) for zeros, suffix in _DECIMAL if size and size % 10**zeros == 0), (0, ""))
    return f"{size // 10**zeros}{suffix}"
