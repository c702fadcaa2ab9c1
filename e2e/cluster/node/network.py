"""The node's network: a bridge for its pods, and the removal of every trace of it.

The API server and the kubelet listen on the bridge's address, which pods and this machine reach and others do not.
"""

import ipaddress
import json
import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

from e2e.cluster.errors import ClusterError
from e2e.cluster.plane.control_plane import SERVICE_RANGE

BRIDGE = "argosy0"
POD_RANGE = ipaddress.ip_network("10.244.0.0/24")
NODE_ADDRESS = str(next(POD_RANGE.hosts()))
MARK = "argosy-e2e"
CNI_RESULTS = Path("/var/lib/cni/results")
_OURS = ("KUBE-",)


def create() -> None:
    """Make the bridge with the node's address, forwarding, and the way out for pods."""
    if not Path(f"/sys/class/net/{BRIDGE}").exists():
        _run("ip", "link", "add", BRIDGE, "type", "bridge")
        _run("ip", "address", "add", f"{NODE_ADDRESS}/{POD_RANGE.prefixlen}", "dev", BRIDGE)
    _run("ip", "link", "set", BRIDGE, "up")
    Path("/proc/sys/net/ipv4/ip_forward").write_text("1")
    for table, *rule in _rules():
        if subprocess.run(["iptables", "-w", "-t", table, "-C", *rule], capture_output=True).returncode != 0:
            _run("iptables", "-w", "-t", table, "-A", *rule)


def _rules() -> list[list[str]]:
    """Return our rules, each after its table.

    The address of a Service that kube-proxy has not heard of yet is refused here, like one without a Pod: otherwise the
    request leaves the machine, and another server may answer it.
    """
    pods, mark = str(POD_RANGE), ["-m", "comment", "--comment", MARK]
    out = ["nat", "POSTROUTING", "-s", pods, "!", "-d", pods, *mark, "-j", "MASQUERADE"]
    return [out, *(["filter", chain, "-d", SERVICE_RANGE, *mark, "-j", "REJECT"] for chain in ("FORWARD", "OUTPUT"))]


def cni_config(addresses: Path) -> str:
    """Return the CNI network list: the bridge, addresses from the pod range (leases in `addresses`)."""
    plugins = [
        {
            "type": "bridge", "bridge": BRIDGE, "isGateway": True, "hairpinMode": True,
            "ipam": {
                "type": "host-local", "dataDir": str(addresses), "routes": [{"dst": "0.0.0.0/0"}],
                "ranges": [[{"subnet": str(POD_RANGE)}]],
            },
        }
    ]  # fmt: skip
    return json.dumps({"cniVersion": "0.4.0", "name": MARK, "plugins": plugins}, indent=2)


def remove() -> None:
    """Remove pods' network namespaces, the bridge, and every rule of kube-proxy, the kubelet and ours."""
    _remove_namespaces()
    if Path(f"/sys/class/net/{BRIDGE}").exists():
        _run("ip", "link", "delete", BRIDGE)
    for family in ("iptables", "ip6tables"):
        saved = subprocess.run([f"{family}-save"], capture_output=True, text=True)
        script = removal(saved.stdout.splitlines())
        if script:
            _run(f"{family}-restore", "-w", "--noflush", stdin=script)


def removal(saved: Iterable[str]) -> str:
    """Return the iptables-restore script that removes Kubernetes' chains and our rules from what iptables-save prints.

    Empty when there are none. Other rules and chains are not touched.
    """
    script: list[str] = []
    rules: list[str] = []
    chains: list[str] = []
    for line in saved:
        if line.startswith("*"):
            script.append(line)
            rules, chains = [], []
        elif line.startswith(":") and line[1:].startswith(_OURS):
            chains.append(line[1:].split()[0])
        elif line.startswith("-A ") and not line[3:].startswith(_OURS) and ("KUBE-" in line or MARK in line):
            rules.append(f"-D{line[2:]}")
        elif line == "COMMIT" and (rules or chains):
            script += [*rules, *(f"-F {chain}" for chain in chains), *(f"-X {chain}" for chain in chains), line]
        elif line == "COMMIT":
            script.pop()
    return "".join(f"{line}\n" for line in script)


def _remove_namespaces() -> None:
    for cached in CNI_RESULTS.glob(f"{MARK}-*"):
        attachment = json.loads(cached.read_text())
        for interface in attachment["result"].get("interfaces", ()):
            namespace = Path(interface.get("sandbox", ""))
            if namespace.name.startswith("cni-") and namespace.exists():
                subprocess.run(["umount", "--lazy", namespace], capture_output=True)
                namespace.unlink(missing_ok=True)
        for loopback in CNI_RESULTS.glob(f"cni-loopback-{attachment['containerId']}-*"):
            loopback.unlink()
        cached.unlink()


def _run(*words: str, stdin: str | None = None) -> None:
    done = subprocess.run(words, input=stdin, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
    if done.returncode != 0:
        raise ClusterError(f"{' '.join(words)} failed: {(done.stderr or done.stdout).strip()}")
