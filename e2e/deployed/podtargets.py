"""A program next to Prometheus in its Pod: `python podtargets.py FILE SECONDS`.

Debian's Prometheus is built without discovery of Pods. So this program lists the namespace's servers every SECONDS, and
writes the addresses of their metrics, with the labels that a PodMonitor sets, into FILE, which Prometheus watches.
"""

import json
import os
import ssl
import sys
import time
import urllib.request
from pathlib import Path
from urllib.parse import quote

ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
POOL, SERVER = "argosy.dev/pool", "argosy.dev/server"


def pods() -> list[dict]:
    """Return the Pods of the namespace's servers."""
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ["KUBERNETES_SERVICE_PORT"]
    namespace = (ACCOUNT / "namespace").read_text()
    url = f"https://{host}:{port}/api/v1/namespaces/{namespace}/pods?labelSelector={quote(SERVER)}"
    request = urllib.request.Request(url, headers={"Authorization": f"Bearer {(ACCOUNT / 'token').read_text()}"})
    trusted = ssl.create_default_context(cafile=str(ACCOUNT / "ca.crt"))
    with urllib.request.urlopen(request, timeout=10, context=trusted) as answer:
        return json.load(answer)["items"]


def target(pod: dict) -> dict:
    """Return one server's address and labels."""
    metadata = pod["metadata"]
    labels = {"namespace": metadata["namespace"], "pod": metadata["name"]}
    named = {"pool": metadata["labels"].get(POOL, ""), "server": metadata["labels"][SERVER]}
    return {"targets": [f"{pod['status']['podIP']}:8002"], "labels": labels | named}


def main(file: Path, every_s: float) -> None:
    """Write the targets again and again until the process is ended."""
    while True:
        try:
            targets = [target(pod) for pod in pods() if pod["status"].get("podIP")]
        except (OSError, ValueError) as error:
            print(f"the API server cannot be asked: {error}", flush=True)
        else:
            temporary = file.with_suffix(".new")
            temporary.write_text(json.dumps(targets))
            temporary.rename(file)
        time.sleep(every_s)


if __name__ == "__main__":
    main(Path(sys.argv[1]), float(sys.argv[2]))
