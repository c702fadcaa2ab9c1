"""Every setting of a pool reaches its Pods, and a new Pod is asked for only when something of it changes."""

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel
from tests.operator.planning import declared
from tests.operator.render.workloads.cases import IMAGES

from argosy.api.pool.openai import ApiKeys, OpenAi
from argosy.api.pool.podtemplate import PodTemplate
from argosy.api.pool.serverflags import RateLimit, ResponseCache
from argosy.api.pool.tracing import Tracing
from argosy.api.servingpool import ModelCache, Runtime, RuntimeName, Storage, Toleration
from argosy.planning.plan import ServerPlan
from argosy.render.names import secret_volume_name
from argosy.render.workloads import Images, pod_template, template_hash
from argosy.render.workloads.pods import control
from argosy.render.workloads.pods.ending import until_idle
from argosy_agent import flags as agent_flags
from argosy_agent.contract import RenderedModel, RenderedRepository, VersionSource
from argosy_agent.contract.documents import ConfigMapName
from argosy_agent.controltoken import OWNER, write_token
from argosy_agent.flags import ConfigMaps
from argosy_runtime import flags

ON_GPUS = ServerPlan("p-0", "node", (4, 6), ())
ON_CPU = ServerPlan("p-0", "node", (), ())
NOTHING = RenderedRepository("p-0")
Template = dict[str, Any]


def template(
    spec: dict[str, Any] | None = None,
    plan: ServerPlan = ON_CPU,
    repository: RenderedRepository = NOTHING,
    images: Images = IMAGES,
) -> Template:
    """Return a server's template in a pool with this spec."""
    return pod_template(declared.pool(metadata={"uid": "1"}, **(spec or {})), plan, repository, images)


def server(result: Template) -> Any:
    """Return the server's container."""
    return result["spec"]["containers"][0]


def agent(result: Template) -> Any:
    """Return the agent's container."""
    return result["spec"]["containers"][1]


def volume(result: Template, name: str) -> Any:
    """Return a volume by its name."""
    return next((volume for volume in result["spec"]["volumes"] if volume["name"] == name), None)


def environment(result: Template) -> dict[str, Any]:
    """Return the server's variables by name."""
    variables = server(result)["env"]
    assert len({variable["name"] for variable in variables}) == len(variables)
    return {variable["name"]: variable for variable in variables}


TRITON = control.server_command(RuntimeName.TRITON)
STAYS = ("karpenter.sh/do-not-disrupt", "cluster-autoscaler.kubernetes.io/safe-to-evict")
SECRET, MAP = {"name": "s", "key": "k"}, {"name": "m", "key": "k"}
SETTINGS: list[tuple[str, dict[str, Any], Callable[[Template], Any], Any]] = [
    ("runtime.name", {"runtime": {"name": "triton"}}, lambda t: server(t)["command"], TRITON),
    ("runtime.name", {"runtime": {"name": "triton"}}, lambda t: server(t)["image"], IMAGES.triton),
    ("runtime.image", {"runtime": {"image": "own"}}, lambda t: server(t)["image"], "own"),
    ("runtime.args", {"runtime": {"args": ["--log-verbose=1"]}}, lambda t: server(t)["args"][-1], "--log-verbose=1"),
    (
        "runtime.pod_template.metadata",
        {"runtime": {"podTemplate": {"metadata": {"labels": {"team": "a"}, "annotations": {"b": "c"}}}}},
        lambda t: (t["metadata"]["labels"]["team"], t["metadata"]["annotations"]["b"]),
        ("a", "c"),
    ),
    (
        "runtime.pod_template.metadata",
        {"runtime": {"podTemplate": {"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "1h"}}}}},
        lambda t: [t["metadata"]["annotations"][key] for key in STAYS],
        ["1h", "false"],
    ),
    (
        "runtime.pod_template.spec",
        {"runtime": {"podTemplate": {"spec": {"priorityClassName": "high"}}}},
        lambda t: t["spec"]["priorityClassName"],
        "high",
    ),
    (
        "rate_limit.resources",
        {"rateLimit": {"resources": [{"name": "a", "count": 2}, {"name": "b", "count": 1, "device": 3}]}},
        lambda t: server(t)["args"][-3:],
        ["--rate-limit=execution_count", "--rate-limit-resource=a:2", "--rate-limit-resource=b:1:3"],
    ),
    (
        "cache.size",
        {"cache": {"size": "1Mi"}},
        lambda t: server(t)["args"][-1],
        "--cache-config=local,size=1048576",
    ),
    (
        "tracing.endpoint tracing.rate",
        {"tracing": {"endpoint": "http://otel:4318/v1/traces", "rate": 10}},
        lambda t: server(t)["args"][-4:],
        [
            "--trace-config=mode=opentelemetry",
            "--trace-config=opentelemetry,url=http://otel:4318/v1/traces",
            "--trace-config=level=TIMESTAMPS",
            "--trace-config=rate=10",
        ],
    ),
    (
        "openai.api_keys.secret_name openai.api_keys.key",
        {"openai": {"apiKeys": {"secretName": "s", "key": "hashes"}}},
        lambda t: (server(t)["args"][-1], server(t)["volumeMounts"][-1], volume(t, "openai-api-keys")["secret"]),
        (
            "--openai-api-keys-file=/secrets/openai-api-keys/hashes",
            {"name": "openai-api-keys", "mountPath": "/secrets/openai-api-keys", "readOnly": True},
            {"secretName": "s", "items": [{"key": "hashes", "path": "hashes"}]},
        ),
    ),
    ("node_selector", {"nodeSelector": {"a": "2"}}, lambda t: t["spec"]["nodeSelector"], {"a": "2"}),
    (
        "tolerations.key tolerations.value tolerations.operator",
        {"tolerations": [{"key": "a", "value": "b"}]},
        lambda t: t["spec"]["tolerations"],
        [{"key": "a", "operator": "Equal", "value": "b"}],
    ),
    (
        "tolerations.effect tolerations.toleration_seconds",
        {"tolerations": [{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}]},
        lambda t: t["spec"]["tolerations"],
        [{"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 60}],
    ),
    (
        "storage.model_cache.claim_name",
        {"storage": {"modelCache": {"claimName": "c"}}},
        lambda t: (
            volume(t, "model-cache"), agent(t)["volumeMounts"][-1], "--cache=/cache" in agent(t)["args"],
        ),
        (
            {"name": "model-cache", "persistentVolumeClaim": {"claimName": "c"}},
            {"name": "model-cache", "mountPath": "/cache"},
            True,
        ),
    ),
    (
        "storage.model_cache.size_limit",
        {"storage": {"modelCache": {"sizeLimit": "1Ki"}}},
        lambda t: (agent(t)["args"][-1], volume(t, "models")["emptyDir"]),
        ("--cache-size=1024", {"sizeLimit": "2Ki"}),
    ),
    (
        "storage.secret_name",
        {"storage": {"secretName": "s"}},
        lambda t: ("envFrom" in agent(t), volume(t, "storage-secret"), agent(t)["volumeMounts"][-1]["mountPath"]),
        (
            False,
            {"name": "storage-secret", "secret": {"secretName": "s"}},
            "/secrets/storage",
        ),
    ),
    (
        "storage.allowed_folders",
        {"storage": {"allowedFolders": ["/mnt/a", "/mnt/b"]}},
        lambda t: [item for item in agent(t)["args"] if "folder=" in item][1:],
        ["--allowed-folder=/mnt/a", "--allowed-folder=/mnt/b"],
    ),
    (
        "storage.service_account_name",
        {"storage": {"serviceAccountName": "a"}},
        lambda t: t["spec"]["serviceAccountName"],
        "a",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("_field", "spec", "read", "expected"), SETTINGS, ids=[setting[0] for setting in SETTINGS])
def test_a_setting_reaches_the_pod(
    _field: str, spec: dict[str, Any], read: Callable[[Template], Any], expected: Any
) -> None:
    assert read(template(spec)) == expected
    assert template_hash(template(spec)) != template_hash(template())


def leaves(prefix: str, model: type[BaseModel], parts: dict[str, type[BaseModel]]) -> Iterator[str]:
    """Yield the fields of a model; fields in `parts` are replaced by those of their own model."""
    for name in model.model_fields:
        if name in parts:
            yield from leaves(f"{prefix}.{name}", parts[name], parts)
        else:
            yield f"{prefix}.{name}"


def test_no_setting_is_forgotten() -> None:
    tried = {field for setting in SETTINGS for field in setting[0].split()}
    fields = {
        *leaves("runtime", Runtime, {"pod_template": PodTemplate}),
        *leaves("rate_limit", RateLimit, {}),
        *leaves("cache", ResponseCache, {}),
        *leaves("tracing", Tracing, {}),
        *leaves("openai", OpenAi, {"api_keys": ApiKeys}),
        *leaves("storage", Storage, {"model_cache": ModelCache}),
        *leaves("tolerations", Toleration, {}),
        "node_selector",
    }
    # Engines are built elsewhere, and reach a server as files like any other.
    assert fields - tried == {"storage.engine_cache"}
    assert tried <= fields


def test_a_server_with_gpus_asks_for_their_number() -> None:
    limits = {"containers": [{"name": "server", "resources": {"limits": {"memory": "1Gi"}}}]}
    result = template({"runtime": {"podTemplate": {"spec": limits}}}, ON_GPUS)
    assert server(result)["resources"]["limits"] == {"memory": "1Gi", "nvidia.com/gpu": "2"}
    assert not {"CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES"} & set(environment(result))


def test_a_server_without_gpus_sees_none() -> None:
    result = environment(template())
    assert result["CUDA_VISIBLE_DEVICES"].get("value", "") == ""
    assert result["NVIDIA_VISIBLE_DEVICES"]["value"] == "void"
    assert "resources" not in server(template())


def test_which_gpus_of_the_node_they_are_is_the_device_plugins_choice() -> None:
    assert template(plan=ON_GPUS) == template(plan=ServerPlan("p-0", "node", (0, 1), ()))


def server_arguments(result: Template, tmp_path: Path) -> list[str]:
    """Return the server's arguments, with a token that exists on this machine."""
    write_token(tmp_path / "token", OWNER)
    return [item.replace(control.TOKEN_FILE, str(tmp_path / "token")) for item in server(result)["args"]]


def test_the_runtime_takes_its_flags_and_stays_ready_during_loads(tmp_path: Path) -> None:
    options = flags.parse(server_arguments(template(), tmp_path))
    assert (options.http_port, options.grpc_port, options.metrics_port) == (8000, 8001, 8002)
    assert (str(options.repository.paths[0]), options.repository.control_mode) == ("/models/repository", "explicit")
    assert options.strict_readiness is False
    assert options.without_effect == ()


def test_every_pod_makes_a_control_token_for_its_server_and_agent(tmp_path: Path) -> None:
    result = template()
    (maker,) = result["spec"]["initContainers"]
    assert maker["command"] == ["python", "-m", "argosy_agent.controltoken", control.TOKEN_FILE]
    assert volume(result, "control-token")["emptyDir"]["medium"] == "Memory"
    folder = str(Path(control.TOKEN_FILE).parent)
    read_only = {"name": "control-token", "mountPath": folder, "readOnly": True}
    assert [volumeMount for volumeMount in maker["volumeMounts"] if "readOnly" not in volumeMount] == maker[
        "volumeMounts"
    ]
    assert read_only in server(result)["volumeMounts"]
    assert read_only in agent(result)["volumeMounts"]
    assert flags.parse(server_arguments(result, tmp_path)).repository.overrides is False
    assert str(agent_flags.parse([a.replace("$(POD_UID)", "u") for a in agent(result)["args"]]).control_token) == (
        control.TOKEN_FILE
    )


def test_two_pods_have_two_tokens_which_only_their_users_read(tmp_path: Path) -> None:
    for name in ("one", "two"):
        subprocess.run([sys.executable, "-m", "argosy_agent.controltoken", str(tmp_path / name)], check=True)
    first, second = ((tmp_path / name).read_text() for name in ("one", "two"))
    assert first != second
    assert len(first.strip()) >= 43
    assert (tmp_path / "one").stat().st_mode & 0o777 == 0o440


def test_a_server_has_the_time_to_become_idle_and_to_answer(tmp_path: Path) -> None:
    ours = flags.parse(server_arguments(template(), tmp_path))
    assert "lifecycle" not in server(template())
    assert ours.drain.period_s > 0
    grace_s = template()["spec"]["terminationGracePeriodSeconds"]
    assert grace_s > ours.drain.limit_s + ours.exit_timeout
    nvidias = server(template({"runtime": {"name": "triton"}}))
    command = nvidias["lifecycle"]["preStop"]["exec"]["command"]
    assert command == until_idle(8002, int(ours.drain.period_s), int(ours.drain.limit_s))
    assert not [flag for flag in nvidias["args"] if "drain" in flag]


def test_the_agent_takes_its_flags_and_finds_what_is_mounted() -> None:
    spec = {"storage": {"modelCache": {"sizeLimit": "1500M"}}}
    arguments = [item.replace("$(POD_UID)", "uid") for item in agent(template(spec))["args"]]
    options = agent_flags.parse(arguments)
    maps = ConfigMaps(
        ConfigMapName("default", "p-0"), ConfigMapName("default", "p-0-state"), agent_flags.SERVICE_ACCOUNT
    )
    assert (options.documents, options.pod, options.cache_size) == (maps, "uid", 1_500_000_000)
    assert (options.folder, options.cache, options.pvc_root) == (Path("/models"), Path("/models/cache"), Path("/pvc"))
    paths = {Path(mount["mountPath"]) for mount in agent(template(spec))["volumeMounts"]}
    assert {options.folder, maps.credentials} <= paths
    (port,) = (port["containerPort"] for port in server(template())["ports"] if port["name"] == "http")
    assert options.server == f"http://127.0.0.1:{port}"


def test_an_agent_may_read_no_file_but_what_the_pool_names() -> None:
    assert (
        agent_flags.parse([item.replace("$(POD_UID)", "u") for item in agent(template())["args"]]).allowed_folders == ()
    )


def test_an_agent_may_read_the_folder_of_the_pools_own_engines() -> None:
    spec = {"storage": {"engineCache": {"storageUri": "file:/engines"}}}
    assert "--allowed-folder=/engines" in agent(template(spec))["args"]


def test_pools_with_other_credentials_share_no_cache() -> None:
    spec = {"storage": {"secretName": "s", "serviceAccountName": "a"}}
    assert "--storage-identity=secret/s,serviceaccount/a" in agent(template(spec))["args"]
    assert not any("--storage-identity" in item for item in agent(template())["args"])


def repository(**uris: str) -> RenderedRepository:
    """Return a repository of models with these storage URIs."""
    return RenderedRepository("p-0", tuple(RenderedModel(k, "", {1: VersionSource(v)}) for k, v in uris.items()))


def test_models_come_and_go_without_a_new_pod() -> None:
    one, other = repository(a="s3://b/a"), repository(b="hf://b/a", c="file:/x", d="https://pvc/x")
    assert template_hash(template(repository=one)) == template_hash(template(repository=other))


def test_a_claim_is_mounted_once_for_all_that_lies_there() -> None:
    one = repository(a="pvc://claim/a", b="pvc://claim")
    assert template(repository=one) == template(repository=repository(b="pvc://claim/other"))
    assert agent(template(repository=one))["volumeMounts"][-1] == {
        "name": "claim-claim", "mountPath": "/pvc/claim", "readOnly": True,
    }  # fmt: skip


def test_the_hash_is_of_all_that_the_template_says_and_not_of_its_order() -> None:
    other = Images("other", IMAGES.triton, IMAGES.agent)
    hashes = {template_hash(template(images=item)) for item in (IMAGES, other)}
    assert len(hashes) == 2
    assert template_hash({"a": 1, "b": 2}) == template_hash({"b": 2, "a": 1})
    one, two = ({"nodeSelector": {"a": "1", "b": "2"}}, {"nodeSelector": {"b": "2", "a": "1"}})
    assert template_hash(template(one)) == template_hash(template(two))


@given(st.integers(1, 2**61))
def test_a_volume_holds_twice_the_cache_to_the_byte(amount: int) -> None:
    units = {"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "P": 10**15, "E": 10**18}
    binary = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
    result = template({"storage": {"modelCache": {"sizeLimit": amount}}})
    text = volume(result, "models")["emptyDir"]["sizeLimit"]
    digits = text.rstrip("KMGTPEik")
    assert int(digits) * {"": 1, **units, **binary}[text[len(digits) :]] == 2 * amount


def test_a_models_secret_is_mounted_for_the_agent_alone_and_may_be_missing() -> None:
    source = VersionSource("s3://b/a", secret="team.a")
    repository = RenderedRepository("p-0", (RenderedModel("a", "", {1: source, 2: source}),))
    spec = template(repository=repository)["spec"]
    assert {"name": secret_volume_name("team.a"), "secret": {"secretName": "team.a", "optional": True}} in spec[
        "volumes"
    ]
    mounts = {
        container["name"]: [mount["mountPath"] for mount in container["volumeMounts"]]
        for container in spec["containers"]
    }
    assert mounts["agent"].count("/secrets/named/team.a") == 1
    assert "/secrets/named/team.a" not in mounts["server"]


def test_a_server_has_nothing_of_the_builds_credentials() -> None:
    result = template({"builds": {"secretName": "engines", "serviceAccountName": "writer"}})
    assert "engines" not in str(result)
    assert result["spec"]["serviceAccountName"] != "writer"


def test_api_keys_come_from_a_secret_that_the_server_alone_has(tmp_path: Path) -> None:
    document = (Path(__file__).resolve().parents[4] / "docs/how-to/openai.md").read_text()
    (block,) = re.findall(r"```yaml\n(kind: ServingPool\n.*?)```", document, re.DOTALL)
    result = template(yaml.safe_load(block)["spec"])
    (mounted,) = [mount for mount in server(result)["volumeMounts"] if mount["name"] == "openai-api-keys"]
    assert volume(result, "openai-api-keys")["secret"]["secretName"] == "openai-keys"
    (tmp_path / "keys").write_text(f"team-a:sha256:{'0' * 64}\n")
    arguments = [item.replace(mounted["mountPath"], str(tmp_path)) for item in server_arguments(result, tmp_path)]
    assert f"--openai-api-keys-file={tmp_path}/keys" in arguments
    options = flags.parse(arguments)
    assert options.openai is not None
    assert options.openai.guard is not None
    assert "openai-api-keys" not in {mount["name"] for mount in agent(result)["volumeMounts"]}


@pytest.mark.parametrize(
    ("gpus", "limits"),
    [
        ((0, 1), {"nvidia.com/gpu": "2"}),
        ((30_400_001,), {"nvidia.com/mig-3g.40gb": "1"}),
        ((10_105_000,), {"nvidia.com/gpu": "1"}),
    ],
)
def test_a_server_asks_for_its_gpus_or_its_slice_by_their_resource(
    gpus: tuple[int, ...], limits: dict[str, str]
) -> None:
    assert server(template({}, ServerPlan("p-0", "node", gpus, ())))["resources"]["limits"] == limits
