"""A pool with the objects of its activator."""

from tests.operator.render.workloads.cases import IMAGES

from argosy.api import ServingPool, parse_documents
from argosy.render.workloads import KubernetesObject, activator_objects
from argosy_agent.contract.activation import ActivatedMember, Activation

POOL = """
apiVersion: argosy.dev/v1alpha1
kind: ServingPool
metadata: {name: NAME, namespace: serving, uid: pool-uid}
spec:
  tolerations: [{key: nvidia.com/gpu, operator: Exists}]
  nodeSelector: {gpu: "yes"}
  runtime:
    podTemplate:
      metadata: {labels: {team: search}}
      spec:
        imagePullSecrets: [{name: registry}]
        containers: [{name: server, resources: {limits: {memory: 64Gi}}}]
"""


def pool(name: str = "gpus") -> ServingPool:
    (found,), problems = parse_documents(POOL.replace("NAME", name), "pool.yaml")
    assert problems == []
    assert isinstance(found, ServingPool)
    return found


def activators_objects(*timeouts_s: float, name: str = "gpus") -> dict[str, KubernetesObject]:
    """By kind and name, of members with these timeouts."""
    members = tuple(ActivatedMember(f"m{at}", f"m{at}", each) for at, each in enumerate(timeouts_s))
    found = activator_objects(pool(name), Activation(members), IMAGES)
    return {f"{each['kind']} {each['metadata']['name']}": each for each in found}
