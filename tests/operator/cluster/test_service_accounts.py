"""A service account that was deleted by hand: its server's Pod has a dead token, and is replaced in its turn."""

from dataclasses import replace
from typing import Any

from tests.operator.cluster.test_activators import POD, owned
from tests.operator.render.workloads.cases import IMAGES, read_case

from argosy.cluster.cache.pool_view import PoolView, pool_view
from argosy.cluster.cache.server_objects import of_account, of_deployment
from argosy.controller.rendering.upgrades import deferred_servers
from argosy.planning.facts import ServerReport
from argosy.render.workloads import (
    NO_ACCOUNT,
    Account,
    Cluster,
    KubernetesObject,
    pod_template,
    pool_objects,
    template_hash,
)

CASE = read_case("cpu_pool")
NAMES = [server.plan.name for server in CASE.servers]
NAME = NAMES[0]


def deployments(view: PoolView) -> dict[str, KubernetesObject]:
    """Return the Deployments that are applied in addition to what the view shows, by server."""
    objects = pool_objects(CASE.pool, CASE.servers, CASE.members, IMAGES, Cluster(), view.accounts)
    matches = [item for item in objects if item["kind"] == "Deployment"]
    return dict(zip(NAMES, matches, strict=True))


def seen(standing: dict[str, KubernetesObject], uids: dict[str, str]) -> PoolView:
    """Return the pool with these Deployments and service accounts, by server."""
    details = [(name, of_deployment(body)) for name, body in standing.items()]
    accounts = [(name, of_account({"metadata": {"uid": uid}})) for name, uid in uids.items()]
    return pool_view([replace(owned(detail), server=name) for name, detail in (*details, *accounts)], [])


def template(body: KubernetesObject) -> Any:
    return body["spec"]["template"]


def test_only_a_recreated_account_brings_a_new_pod() -> None:
    first = deployments(PoolView())
    noted = deployments(seen(first, {NAME: "one"}))
    assert template(noted[NAME]) == template(first[NAME])
    again = deployments(seen(noted, {NAME: "one"}))
    assert again == noted
    gone = deployments(seen(noted, {}))
    assert gone == noted, "it is applied again, and its UID is not known yet"
    remade = deployments(seen(noted, {NAME: "two"}))
    assert template(remade[NAME]) != template(noted[NAME])
    assert template(remade[NAME])["metadata"]["annotations"]["argosy.dev/service-account"] == "two"
    assert (
        remade[NAME]["metadata"]["annotations"]["argosy.dev/template"]
        != (noted[NAME]["metadata"]["annotations"]["argosy.dev/template"])
    )
    assert deployments(seen(remade, {NAME: "two"})) == remade


def test_servers_with_recreated_accounts_are_replaced_one_by_one() -> None:
    names = ("a", "b")
    (former,) = (server for server in CASE.servers if server.plan.name == NAME)
    servers = [replace(former, plan=replace(former.plan, name=name)) for name in names]
    reports = tuple(ServerReport(name, ready=True, settled=True) for name in names)
    pods = tuple(replace(POD, uid=name, server=name, ready=True, routes=former.routes) for name in names)
    standing = {
        server.plan.name: template_hash(pod_template(CASE.pool, server.plan, server.repository, IMAGES))
        for server in servers
    }
    view = PoolView(templates=standing, reports=reports, pods=pods, accounts={name: Account("a") for name in names})
    assert deferred_servers(CASE.pool, servers, IMAGES, view) == frozenset()
    remade = replace(view, accounts={name: Account("b", "b") for name in names})
    assert deferred_servers(CASE.pool, servers, IMAGES, remade) == {"b"}


def test_what_is_recorded_of_an_account() -> None:
    assert NO_ACCOUNT.seen("") == NO_ACCOUNT
    assert NO_ACCOUNT.seen("a") == Account("a")
    assert Account("a").seen("") == Account("a").seen("a") == Account("a")
    assert Account("a").seen("b") == Account("b", "b")
    assert Account("b", "b").seen("c") == Account("c", "c")


def test_an_account_that_is_sent_has_no_uid_so_that_its_answer_is_news() -> None:
    assert of_account({"metadata": {"name": "a"}}) != of_account({"metadata": {"name": "a", "uid": "u"}})
