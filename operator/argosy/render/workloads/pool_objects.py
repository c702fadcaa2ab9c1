"""All objects of one pool, in the order in which they are of use."""

from collections.abc import Iterator, Mapping, Sequence

from argosy.api.ensemble import Ensemble
from argosy.api.inferencemodel import InferenceModel
from argosy.api.servingpool import ServingPool
from argosy.planning.facts import Node
from argosy.render.repositories import RenderedServer
from argosy.render.workloads.configmaps import desired_configmap, state_configmap
from argosy.render.workloads.inferencepools import inference_pools
from argosy.render.workloads.pods.claims import claim_template
from argosy.render.workloads.pods.deployment import deployment, disruption_budget
from argosy.render.workloads.pods.inputs import NO_ACCOUNT, Account, Cluster, Images, KubernetesObject
from argosy.render.workloads.rbac import role, role_binding, service_account
from argosy.render.workloads.services import member_service, network_policy, pool_service, sequence_idles


def pool_objects(
    pool: ServingPool,
    servers: Sequence[RenderedServer],
    members: Sequence[InferenceModel | Ensemble],
    images: Images,
    cluster: Cluster,
    accounts: Mapping[str, Account] | None = None,
    nodes: Mapping[str, Node] | None = None,
) -> tuple[KubernetesObject, ...]:
    """Return all objects of a pool in the order of applying: accounts and rights, ConfigMaps, Services, Deployments.

    `members`: the pool's own models and ensembles. A pool without servers, such as a suspended one, keeps its other
    objects, so that addresses stay. `accounts`: the existing service accounts, by server. `nodes` are by name. No two
    objects have the same identity.
    """
    names, seen = [server.plan.name for server in servers], accounts or {}
    idles = sequence_idles(members)
    declared = (service_account(pool, name) for name in names)
    return (
        *(account for account in declared if account is not None),
        *(role(pool, name) for name in names),
        *(role_binding(pool, name) for name in names),
        *(desired_configmap(pool, server, (nodes or {}).get(server.plan.node)) for server in servers),
        *(state_configmap(pool, name) for name in names),
        pool_service(pool),
        *(member_service(pool, member, idles.get(member.name)) for member in members),
        *(inference_pools(pool, members) if cluster.inference_pools else ()),
        network_policy(pool),
        disruption_budget(pool, cluster),
        *_claim_templates(pool, servers, nodes or {}),
        *(deployment(pool, server, images, seen.get(server.plan.name, NO_ACCOUNT)) for server in servers),
    )


def _claim_templates(
    pool: ServingPool, servers: Sequence[RenderedServer], nodes: Mapping[str, Node]
) -> Iterator[KubernetesObject]:
    """Yield the ResourceClaimTemplates of the servers that have devices of DRA drivers."""
    for server in servers:
        template = claim_template(pool, server.plan.name, server.plan.gpus, nodes.get(server.plan.node))
        if template is not None:
            yield template
