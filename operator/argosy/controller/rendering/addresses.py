"""Where a pool and its members are reached, and by which Pods: what their statuses give. Pure."""

from argosy.controller.resources.store import Declared
from argosy.render.workloads import (
    member_grpc_address,
    member_selector,
    member_url,
    pool_grpc_address,
    pool_selector,
    pool_url,
)


def urls(declared: Declared) -> dict[str, str]:
    """Return where each is reached over HTTP, by identity."""
    urls: dict[str, str] = {member.identity: member_url(member) for member in declared.members}
    if declared.pool is not None:
        urls[declared.pool.identity] = pool_url(declared.pool)
    return urls


def grpc_addresses(declared: Declared) -> dict[str, str]:
    """Return where gRPC clients connect, by identity."""
    addresses: dict[str, str] = {member.identity: member_grpc_address(member) for member in declared.members}
    if declared.pool is not None:
        addresses[declared.pool.identity] = pool_grpc_address(declared.pool)
    return addresses


def selectors(declared: Declared) -> dict[str, str]:
    """Return the label selectors of the Pods that serve each, by identity."""
    selectors: dict[str, str] = {member.identity: member_selector(member) for member in declared.members}
    if declared.pool is not None:
        selectors[declared.pool.identity] = pool_selector(declared.pool)
    return selectors
