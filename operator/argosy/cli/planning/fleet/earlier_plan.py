"""The servers of an earlier plan, as `argosy plan -o json` wrote it: read field by field, and checked. Pure."""

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from argosy.api.values.identity import PoolKey
from argosy.planning.facts import CurrentServer, Device, Need, Node
from argosy.planning.nodes.slices import device_name

Servers = Mapping[PoolKey, Sequence[CurrentServer]]


class NoPlanError(Exception):
    """A document is no plan. The message names the field."""


def servers_of(document: Any) -> dict[PoolKey, list[CurrentServer]]:
    """Return the servers of each pool. Raises NoPlanError."""
    pools = _list(_map(document, "the document"), "pools", "")
    return {PoolKey(_text(pool, "name", path)): list(_servers(pool, path)) for pool, path in pools}


def problems(servers: Servers, pools: Collection[PoolKey], nodes: Sequence[Node]) -> Iterator[str]:
    """Yield what is wrong with the servers in a fleet of these pools and nodes."""
    devices = {node.name: None if node.stale else {gpu.index for gpu in node.gpus} for node in nodes}
    for pool in (pool for pool in servers if pool not in pools):
        yield f"pool {pool}: there is no such ServingPool; add its manifest, or leave it out of the plan"
    for pool, of_pool in servers.items():
        for server in of_pool:
            if lack := _lack(server, devices):
                yield f"server {server.name} of pool {pool}: {lack}"
    yield from _doubles(servers)


def _lack(server: CurrentServer, nodes: Mapping[str, set[int] | None]) -> str:
    """Return what is wrong with one server, in words; empty if nothing. The devices of some nodes are not known."""
    if server.node not in nodes:
        return f"there is no node {server.node}. To plan without a node, name it by --without-node"
    devices = nodes[server.node]
    if devices is None:
        return (
            f"the devices of node {server.node} cannot be read; correct the node, or leave its servers out of the plan"
        )
    missing = sorted(set(server.gpus) - devices)
    if missing:
        return f"node {server.node} has no {device_name(missing[0])}"
    for model, gpus in server.placed.items():
        if outside := sorted(set(gpus) - set(server.gpus)):
            return f"model {model} is on {device_name(outside[0])}, which is not among the server's gpus"
    return ""


def _doubles(servers: Servers) -> Iterator[str]:
    """Yield servers of one name, and GPUs that two servers have."""
    for pool, of_pool in servers.items():
        for name, count in Counter(server.name for server in of_pool).items():
            if count > 1:
                yield f"server {name} of pool {pool}: is there {count} times; keep one"
    holders: dict[Device, str] = {}
    for pool, of_pool in servers.items():
        for server in of_pool:
            one = f"server {server.name} of pool {pool}"
            for gpu in sorted(set(server.gpus)):
                other = holders.setdefault((server.node, gpu), one)
                if other != one:
                    yield f"{one}: {other} has {device_name(gpu)} of node {server.node}, too; give it to one of them"


def _servers(pool: Mapping[str, Any], path: str) -> Iterator[CurrentServer]:
    for server, at in _list(pool, "servers", path):
        models = _list(server, "models", at)
        placed = {_text(model, "model", of): _gpus(model, of) for model, of in models}
        shared = ((model, of) for model, of in models if "memory" in model and not model.get("whole"))
        needs = {_text(model, "model", of): _need(model, of) for model, of in shared}
        yield CurrentServer(_text(server, "name", at), _text(server, "node", at), _gpus(server, at), placed, needs)


def _need(model: Mapping[str, Any], path: str) -> Need:
    return Need(_number(model, "memory", path), _number(model, "compute", path))


def _number(parent: Mapping[str, Any], key: str, path: str) -> int:
    value = parent.get(key, 0)
    if type(value) is not int or value < 0:
        raise NoPlanError(f"{_path(path, key)}: expected a number that is not negative")
    return value


def _map(value: Any, path: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise NoPlanError(f"{path}: expected a map")
    return value


def _list(parent: Mapping[str, Any], key: str, path: str) -> list[tuple[Mapping[str, Any], str]]:
    """Return the maps of a list, each with its path."""
    name, entries = _path(path, key), parent.get(key)
    if not isinstance(entries, list):
        raise NoPlanError(f"{name}: expected a list")
    return [(_map(entry, f"{name}[{at}]"), f"{name}[{at}]") for at, entry in enumerate(entries)]


def _text(parent: Mapping[str, Any], key: str, path: str) -> str:
    value = parent.get(key)
    if not isinstance(value, str) or not value:
        raise NoPlanError(f"{_path(path, key)}: expected a name")
    return value


def _gpus(parent: Mapping[str, Any], path: str) -> tuple[int, ...]:
    value = parent.get("gpus")
    if not isinstance(value, list) or not all(type(gpu) is int and gpu >= 0 for gpu in value):
        raise NoPlanError(f"{_path(path, 'gpus')}: expected a list of GPU indexes")
    return tuple(value)


def _path(path: str, key: str) -> str:
    return f"{path}.{key}" if path else key
