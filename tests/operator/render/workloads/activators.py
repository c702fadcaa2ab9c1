"""A pool with the objects of its activator."""

from tests.operator.render.workloads.cases import IMAGES

from argosy.api import ServingPool, parse_documents
from argosy.render.workloads import Cluster, KubernetesObject, activator_objects
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
      metadata: {labels: {team: search}, annotations: {example.com/scrape: "false"}}
      spec:
        imagePullSecrets: [{name: registry}]
        securityContext: {runAsUser: null, runAsGroup: null, fsGroup: null}
        hostPID: true
        affinity: {podAffinity: {}}
        volumes: [{name: authority, configMap: {name: ca}}, {name: scratch, emptyDir: {}}]
        containers:
          - {name: server, resources: {limits: {memory: 64Gi}}, volumeMounts: [{name: scratch, mountPath: /scratch}]}
          - name: agent
            resources: {limits: {cpu: "1", memory: 1Gi}}
            securityContext: {runAsNonRoot: true}
            env: [{name: HTTPS_PROXY, value: "http://proxy:3128"}]
            volumeMounts: [{name: authority, mountPath: /etc/authority}]
          - {name: sidecar, image: example.com/sidecar}
"""


def pool(name: str = "gpus", more: str = "") -> ServingPool:
    (resource,), problems = parse_documents(POOL.replace("NAME", name) + more, "pool.yaml")
    assert problems == []
    assert isinstance(resource, ServingPool)
    return resource


def activators_objects(
    *timeouts_s: float, name: str = "gpus", pdb_version: str = "policy/v1", more: str = ""
) -> dict[str, KubernetesObject]:
    """Return the objects of members with these timeouts, by kind and name; `more` lines follow those of the pool."""
    members = tuple(ActivatedMember(f"m{at}", f"m{at}", item) for at, item in enumerate(timeouts_s))
    result = activator_objects(pool(name, more), Activation(members), IMAGES, Cluster(pdb_version))
    return {f"{item['kind']} {item['metadata']['name']}": item for item in result}
