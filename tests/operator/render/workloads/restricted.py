"""Kubernetes' restricted Pod Security Standard, version 1.30, as data, and what of it a Pod breaks."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

VOLUMES = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim", "projected", "secret"}
SELINUX = (None, "", "container_t", "container_init_t", "container_kvm_t", "container_engine_t")
SYSCTLS = {
    "kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.ip_unprivileged_port_start",
    "net.ipv4.tcp_syncookies", "net.ipv4.ping_group_range", "net.ipv4.ip_local_reserved_ports",
    "net.ipv4.tcp_keepalive_time", "net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl",
    "net.ipv4.tcp_keepalive_probes",
}  # fmt: skip
SECCOMP = ("RuntimeDefault", "Localhost")


def one_of(*allowed: Any) -> Callable[[Any], bool]:
    """Return a check that a value, or None where it is missing, is one of these."""
    return lambda value: value in allowed


RULES: Mapping[str, Callable[[Any], bool]] = {
    "hostNetwork": one_of(None, False),
    "hostPID": one_of(None, False),
    "hostIPC": one_of(None, False),
    "securityContext.windowsOptions.hostProcess": one_of(None, False),
    "securityContext.seLinuxOptions.type": one_of(*SELINUX),
    "securityContext.seLinuxOptions.user": one_of(None, ""),
    "securityContext.seLinuxOptions.role": one_of(None, ""),
    "securityContext.appArmorProfile.type": one_of(None, *SECCOMP),
    "securityContext.sysctls.*.name": lambda value: value in SYSCTLS,
    "securityContext.runAsNonRoot": one_of(True),
    "securityContext.runAsUser": lambda value: value != 0,
    "securityContext.seccompProfile.type": one_of(*SECCOMP),
    "volumes.*": lambda volume: set(volume) - {"name"} <= VOLUMES,
    "containers.*.ports.*.hostPort": one_of(None, 0),
    "containers.*.securityContext.windowsOptions.hostProcess": one_of(None, False),
    "containers.*.securityContext.seLinuxOptions.type": one_of(*SELINUX),
    "containers.*.securityContext.seLinuxOptions.user": one_of(None, ""),
    "containers.*.securityContext.seLinuxOptions.role": one_of(None, ""),
    "containers.*.securityContext.appArmorProfile.type": one_of(None, *SECCOMP),
    "containers.*.securityContext.privileged": one_of(None, False),
    "containers.*.securityContext.procMount": one_of(None, "Default"),
    "containers.*.securityContext.allowPrivilegeEscalation": one_of(False),
    "containers.*.securityContext.runAsNonRoot": one_of(None, True),
    "containers.*.securityContext.runAsUser": lambda value: value != 0,
    "containers.*.securityContext.seccompProfile.type": one_of(None, *SECCOMP),
    "containers.*.securityContext.capabilities.drop": lambda value: "ALL" in (value or ()),
    "containers.*.securityContext.capabilities.add": lambda value: set(value or ()) <= {"NET_BIND_SERVICE"},
}


def broken(spec: Mapping[str, Any]) -> list[str]:
    """Return the rules that a Pod's spec breaks; those of containers hold for every sort of container."""
    result = {**spec, "containers": [*spec["containers"], *spec.get("initContainers", ())]}
    return [path for path, rule in RULES.items() if not all(map(rule, _values(result, path.split("."))))]


def _values(value: Any, path: list[str]) -> Iterator[Any]:
    """Yield the values at a path: None where a field is missing, nothing for a list without items."""
    if not path:
        yield value
    elif path[0] == "*":
        for item in value or ():
            yield from _values(item, path[1:])
    else:
        yield from _values((value or {}).get(path[0]), path[1:])
