"""The real Prometheus in a Pod, as a team has it: it finds servers by their Pods, in one namespace.

The program is Debian's, of the machine that the node runs on.
"""

import json
from pathlib import Path

from tests.peers import prometheus

from e2e.asking.namespace import Namespace
from e2e.cluster.errors import ClusterUnavailableError
from e2e.starting import give_up

PORT = 9090
TARGETS = Path(__file__).with_name("podtargets.py")
CONFIG = """
global: {scrape_interval: 2s, scrape_timeout: 2s}
scrape_configs:
- job_name: servers
  file_sd_configs: [{files: [/targets/servers.json]}]
"""
MANIFEST = """
apiVersion: v1
kind: ServiceAccount
metadata: {{name: prometheus, namespace: {namespace}}}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {{name: prometheus, namespace: {namespace}}}
rules: [{{apiGroups: [""], resources: [pods], verbs: [get, list, watch]}}]
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {{name: prometheus, namespace: {namespace}}}
roleRef: {{apiGroup: rbac.authorization.k8s.io, kind: Role, name: prometheus}}
subjects: [{{kind: ServiceAccount, name: prometheus, namespace: {namespace}}}]
---
apiVersion: v1
kind: ConfigMap
metadata: {{name: prometheus, namespace: {namespace}}}
data: {{prometheus.yml: {config}, podtargets.py: {targets}}}
---
apiVersion: v1
kind: Service
metadata: {{name: prometheus, namespace: {namespace}}}
spec: {{selector: {{app: prometheus}}, ports: [{{port: {port}, protocol: TCP}}]}}
"""
POD = """
apiVersion: v1
kind: Pod
metadata: {{name: prometheus, namespace: {namespace}, labels: {{app: prometheus}}}}
spec:
  serviceAccountName: prometheus
  terminationGracePeriodSeconds: 0
  containers:
  - name: main
    image: {image}
    imagePullPolicy: Never
    command: [/program/prometheus, --config.file=/config/prometheus.yml, --storage.tsdb.path=/data]
    readinessProbe: {{httpGet: {{path: /-/ready, port: {port}}}, periodSeconds: 1}}
    volumeMounts:
    - {{name: program, mountPath: /program/prometheus}}
    - {{name: config, mountPath: /config}}
    - {{name: data, mountPath: /data}}
    - {{name: targets, mountPath: /targets}}
  - name: targets
    image: {image}
    imagePullPolicy: Never
    command: [python, -u, /config/podtargets.py, /targets/servers.json, "1"]
    volumeMounts:
    - {{name: config, mountPath: /config}}
    - {{name: targets, mountPath: /targets}}
  volumes:
  - {{name: program, hostPath: {{path: {program}, type: File}}}}
  - {{name: config, configMap: {{name: prometheus}}}}
  - {{name: data, emptyDir: {{}}}}
  - {{name: targets, emptyDir: {{}}}}
"""


def start(namespace: Namespace, image: str) -> str:
    """Run it, in an image with Python and a C library. Its URL, which the operator reaches; skips where there is none
    to run.
    """
    names = {"namespace": namespace.name, "port": PORT}
    texts = {"config": json.dumps(CONFIG), "targets": json.dumps(TARGETS.read_text())}
    namespace.access.apply(MANIFEST.format(**texts, **names))
    run(namespace, image)
    address = namespace.read("service", "prometheus")["spec"]["clusterIP"]
    return f"http://{address}:{PORT}"


def run(namespace: Namespace, image: str) -> None:
    """Start its Pod, and wait until it is ready. It begins with no data."""
    try:
        program = prometheus.install()
    except ClusterUnavailableError as error:
        give_up(str(error))
    namespace.access.apply(POD.format(namespace=namespace.name, port=PORT, image=image, program=program))
    namespace("wait", "--for=condition=Ready", "pod/prometheus", "--timeout=60s", timeout_s=70)


def kill(namespace: Namespace) -> None:
    """Delete its Pod at once, with its data."""
    namespace("delete", "pod", "prometheus", "--grace-period=0", "--force")
