"""The storage's image, Pod and Service."""

import shutil
import tarfile
from pathlib import Path

from e2e.cluster import Access
from e2e.cluster.waiting import wait_for

ROOT = Path(__file__).parents[2]
ASSISTANT = ROOT / "examples/assistant/models"
SMALL = ROOT / "e2e/models"
PORT = 8080
DOCKERFILE = f"""\
ARG BASE=python:3.11-slim
FROM ${{BASE}}
COPY server.py /server.py
COPY files /files
USER 65532
CMD ["python3", "-u", "/server.py", "/files", "{PORT}"]
"""
MANIFEST = """
apiVersion: v1
kind: Namespace
metadata: {{name: {namespace}}}
---
apiVersion: v1
kind: Pod
metadata: {{name: storage, namespace: {namespace}, labels: {{app: storage}}}}
spec:
  automountServiceAccountToken: false
  terminationGracePeriodSeconds: 0
  containers:
  - name: main
    image: {image}
    imagePullPolicy: {pull_policy}
    readinessProbe: {{tcpSocket: {{port: {port}}}, periodSeconds: 1}}
---
apiVersion: v1
kind: Service
metadata: {{name: storage, namespace: {namespace}}}
spec: {{selector: {{app: storage}}, ports: [{{port: 80, targetPort: {port}, protocol: TCP}}]}}
"""


def write_context(folder: Path) -> None:
    """Write the build's context: the server, and an archive of each model, whose bytes depend only on its files."""
    files = folder / "files"
    files.mkdir()
    (folder / "Dockerfile").write_text(DOCKERFILE)
    shutil.copy(ROOT / "e2e/storage/server.py", folder / "server.py")
    for model in sorted(path for parent in (ASSISTANT, SMALL) for path in parent.iterdir() if path.is_dir()):
        with tarfile.open(files / f"{model.name}.tar", "w") as archive:
            for path in sorted(path for path in model.iterdir() if path.is_file()):
                archive.add(path, path.name, filter=_plain)


def start(access: Access, image: str, pull_policy: str, namespace: str = "storage") -> str:
    """Run it and return its URL, which every Pod can reach: there may be no DNS in the cluster."""
    access.apply(MANIFEST.format(namespace=namespace, image=image, pull_policy=pull_policy, port=PORT))
    access.kubectl("wait", "--for=condition=Ready", "pod/storage", "-n", namespace, "--timeout=60s", timeout_s=70)
    address = access.read("service", "storage", "-n", namespace)["spec"]["clusterIP"]

    def reachable() -> bool:
        endpoints = access.read("endpoints", "storage", "-n", namespace)
        return bool(endpoints.get("subsets"))

    wait_for("the storage's endpoint", reachable, 30)
    return f"http://{address}"


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = entry.mtime = 0
    entry.uname = entry.gname = ""
    entry.mode = 0o644
    return entry
