"""The small parts of `argosy up`: ports, rates, printing, the machine, manifests, export, the lock."""

import errno
import re
import socket
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console
from tests.operator.planning import declared
from tests.operator.planning.declared import ensemble, pool

from argosy.api.crd.crds import DEFINITIONS
from argosy.api.problems import Problem
from argosy.api.rolloutstatus import RolloutStatus
from argosy.api.status import EnsembleStatus
from argosy.cli.planning.render import render
from argosy.local.export import MARKER, NotOursError, export
from argosy.local.machine import cpu_node, joined, visible
from argosy.local.manifests.reading import read_manifests
from argosy.local.manifests.this_machine import for_this_machine, settings, without_effect
from argosy.local.printing import age, definition_of, find, table
from argosy.local.rates import Meter, Rate, Reading, rates, reading
from argosy.local.resources import documents as resource_documents
from argosy.local.resources import restored, stamped
from argosy.local.servers.ports import ListenError, PortInUseError, Ports, check_free, next_free
from argosy.local.servers.server import Command
from argosy.local.state import StateFolder, StateInUseError
from argosy.local.views.line_view import LineView
from argosy.local.views.rows import BuildRow, Row, ServerRow, rows
from argosy.local.views.table_view import TableView, builds_table, models_table
from argosy.reconcile import reconcile
from argosy.snapshot import FleetSnapshot
from argosy_agent.contract import RenderedModel, RenderedRepository, VersionSource
from argosy_agent.sync.control import Tally
from argosy_runtime import flags


def test_a_taken_port_is_named_with_its_flag() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(PortInUseError, match=f"port {port} .* --metrics-port"):
            check_free("127.0.0.1", Ports(_free(), _free(), port))
        other = next_free("127.0.0.1", Ports(port - 1, port - 1, port - 1), ())
    assert port not in other.flags().values()
    assert len(set(other.flags().values())) == 3


@pytest.mark.parametrize("host", ["192.0.2.1", "no-such-host.invalid", "a..b"])
def test_an_address_of_another_machine_is_no_port_in_use(host: str) -> None:
    message = f"this machine cannot listen on {host}: .*: pass one of its own addresses with --host"
    for listen in (lambda: check_free(host, Ports(1, 2, 3)), lambda: next_free(host, Ports(1, 2, 3), ())):
        with pytest.raises(ListenError, match=message):
            listen()


def test_a_port_that_is_not_permitted_is_named_with_its_flag(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: socket.socket, address: tuple[str, int]) -> None:
        if address[1] < 1024:
            raise PermissionError(errno.EACCES, "Permission denied")

    with monkeypatch.context() as patched:
        patched.setattr(socket, "socket", type("Refusing", (socket.socket,), {"bind": refuse}))
        with pytest.raises(ListenError, match=r"port 80 on 127\.0\.0\.1: Permission denied: .* with --http"):
            check_free("127.0.0.1", Ports(80, 8001, 8002))
        assert next_free("127.0.0.1", Ports(80, 8001, 8002), ()).http == 1024


def test_a_second_server_above_the_last_port_is_refused() -> None:
    with pytest.raises(ListenError, match=r"no port above 65535 on 127\.0\.0\.1 is free: pass a lower one"):
        next_free("127.0.0.1", Ports(65535, 8001, 8002), ())


def _free() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_rates_are_of_the_time_between_two_readings() -> None:
    before = reading(10.0, {"a": [Tally("m", 1, 100, 0, 0, 0)], "b": [Tally("m", 1, 50, 0, 0, 0)]})
    after = reading(
        12.0, {"a": [Tally("m", 1, 110, 2, 5_000_000, 10_000_000)], "b": [Tally("m", 1, 10, 0, 15_000_000, 0)]}
    )
    rate = rates(before, after)["m"]
    assert rate.requests == 10.0  # b started again, so all of its 10 count
    assert (rate.failures, rate.queue_ms, rate.compute_ms) == (1.0, 1.0, 0.5)
    assert rates(Reading(), Reading()) == {}


def test_a_meter_looks_back_over_its_window() -> None:
    meter = Meter(window_s=2.0)
    series = [
        meter.rates(reading(float(at), {"a": [Tally("m", 1, at * at, 0, 0, 0)]}))["m"].requests for at in range(5)
    ]
    assert series == [0.0, 1.0, 2.0, 4.0, 6.0]


@given(st.integers(0, 10**7))
def test_an_age_is_short(seconds: int) -> None:
    shown = age(timedelta(seconds=seconds))
    assert shown[-1] in "smhd"
    assert abs(int(shown[:-1]) * {"s": 1, "m": 60, "h": 3600, "d": 86400}[shown[-1]] - seconds) < 86400


def test_columns_are_detected_by_their_paths() -> None:
    document = {
        "metadata": {"name": "m", "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"poolRef": {"name": "p"}},
        "status": {"conditions": [{"type": "Ready", "status": "True"}], "replicas": 0},
    }
    assert find(document, '.status.conditions[?(@.type=="Ready")].status') == "True"
    assert find(document, '.status.conditions[?(@.type=="Gone")].status') is None
    assert find(document, ".status.replicas") == 0
    definition = definition_of("InferenceModels")
    assert definition is DEFINITIONS[0]
    assert definition_of("pods") is None
    lines = list(table(definition, [document], wide=False, now=datetime(2026, 1, 1, 0, 5, tzinfo=UTC)))
    assert lines[1].split() == ["m", "True", "<none>", "p", "<none>", "<none>", "0", *["<none>"] * 6, "5m"]


@pytest.mark.parametrize(
    ("setting", "expected"),
    [(None, [0, 1, 2]), ("2,0", [2, 0]), ("", []), ("GPU-b", [1]), ("0,9,1", [0]), ("-1", [])],
)
def test_cuda_visible_devices_is_respected(setting: str | None, expected: list[int]) -> None:
    assert visible(["GPU-a", "GPU-b", "GPU-c"], setting) == expected


def test_nvlink_groups_are_joined_through_one_another() -> None:
    links = {(0, 1), (1, 2), (4, 5)}
    components = joined(range(7), lambda a, b: (min(a, b), max(a, b)) in links)
    assert set(components) == {frozenset({0, 1, 2}), frozenset({4, 5})}


def test_a_machine_without_gpus_is_one_slot() -> None:
    (slot,) = cpu_node().gpus
    assert slot.is_cpu
    assert slot.memory > 2**28


def test_manifests_are_read_with_all_their_problems(workspace: Any, documents: Any) -> None:
    workspace.write(documents("one", 1, "../models/one dir/x".replace(" ", "%20")))
    nested = workspace.manifests / "more"
    nested.mkdir()
    (nested / "bad.yaml").write_text(documents("two", 0, "x") + documents("three", 1, "x").replace("python", "snake"))
    (nested / "broken.yml").write_text("a: [")
    (nested / "other.yaml").write_text("apiVersion: v1\nkind: Namespace\nmetadata: {name: x}\n")
    (workspace.manifests / ".hidden").mkdir()
    (workspace.manifests / ".hidden" / "x.yaml").write_text("nonsense")
    manifests = read_manifests(workspace.manifests)
    assert {(Path(p.file).name, p.path) for p in manifests.problems} == {
        ("bad.yaml", "spec.version"),
        ("bad.yaml", "spec.modelFormat.name"),
        ("broken.yml", ""),
    }
    (model,) = [resource for resource in manifests.resources if resource.kind == "InferenceModel"]
    assert model.spec.storage_uri == (workspace.root / "models" / "one dir" / "x").as_uri()
    assert manifests.sources[model.identity].endswith("all.yaml")


def test_two_files_with_the_same_model_are_both_named(workspace: Any, documents: Any) -> None:
    workspace.write(documents("one", 1, "x"))
    (workspace.manifests / "later.yaml").write_text(documents("one", 2, "x"))
    (problem,) = read_manifests(workspace.manifests).problems
    assert problem.file.endswith("later.yaml")
    assert re.search("there are two of InferenceModel default/one, one in .*all.yaml; rename", problem.message)


def test_a_folder_without_resources_is_a_problem(workspace: Any) -> None:
    (problem,) = read_manifests(workspace.manifests).problems
    assert "holds no argosy.dev resources" in str(problem)


def test_one_machine_stands_for_every_node(workspace: Any, documents: Any) -> None:
    workspace.write(documents("one", 1, "x") + "  minReplicas: 3\n  maxReplicas: 5\n")
    text = (workspace.manifests / "all.yaml").read_text().replace("spec: {}", "spec: {nodeSelector: {gpu: h100}}")
    (workspace.manifests / "all.yaml").write_text(text)
    resources = read_manifests(workspace.manifests).resources
    pool, model = for_this_machine(resources, gpus=2)
    assert pool.spec.node_selector == {}
    assert (model.spec.min_replicas, model.spec.max_replicas) == (2, 2)
    assert for_this_machine(resources, gpus=0)[1].spec.min_replicas == 1


def test_an_export_replaces_its_own_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("one")
    source = VersionSource((tmp_path / "model.py").as_uri())
    first = [RenderedRepository("s", (RenderedModel("m", 'name: "m"\n', {1: source}),))]
    output = tmp_path / "out"
    export(first, output)
    assert {str(p.relative_to(output)) for p in output.rglob("*") if p.is_file()} == {
        MARKER,
        "s/m/config.pbtxt",
        "s/m/1/model.py",
    }
    export([RenderedRepository("s")], output)
    assert [p.name for p in (output / "s").iterdir()] == []
    other = tmp_path / "other"
    other.mkdir()
    (other / "precious").touch()
    with pytest.raises(NotOursError, match="was not written by argosy render"):
        export(first, other)
    assert [p.name for p in other.iterdir()] == ["precious"]
    assert not list(tmp_path.glob(".out-*"))


def test_render_writes_what_this_machine_would_serve(
    workspace: Any, documents: Any, pipe: str, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace.write_model("double", 2.0)
    workspace.write(documents("one", 1, "double"), documents("two", 4, "double"), pipe)
    render([workspace.manifests], workspace.root / "out")
    files = {str(p.relative_to(workspace.root / "out/laptop-0")) for p in (workspace.root / "out/laptop-0").rglob("*")}
    assert {"one/1/model.py", "two/4/model.py", "pipe/1", "pipe/config.pbtxt"} <= files
    assert "laptop-0: 2 models" in capsys.readouterr().out


def test_render_refuses_what_is_wrong_and_writes_nothing(workspace: Any, documents: Any) -> None:
    workspace.write(documents("one", 1, "nothing-there"))
    with pytest.raises(typer.Exit) as refused:
        render([workspace.manifests], workspace.root / "out")
    assert refused.value.exit_code == 1
    assert not (workspace.root / "out").exists()


def pool_of(workspace: Any, runtime: str, rest: str = "") -> Any:
    """Return the resources of a manifest with one pool."""
    (workspace.manifests / "pool.yaml").write_text(
        "apiVersion: argosy.dev/v1alpha1\nkind: ServingPool\nmetadata: {name: laptop}\n"
        f"spec: {{runtime: {{{runtime}}}{rest}}}\n"
    )
    return read_manifests(workspace.manifests).resources


def test_a_pools_variables_reach_its_servers_and_what_cannot_is_reported(workspace: Any) -> None:
    secret = "{name: B, valueFrom: {secretKeyRef: {name: s, key: k}}}"
    container = f"{{name: server, resources: {{limits: {{memory: 1Gi}}}}, env: [{{name: A, value: x}}, {secret}]}}"
    runtime = f"name: triton, image: x/y, podTemplate: {{spec: {{containers: [{container}]}}}}"
    resources = pool_of(workspace, runtime)
    assert settings(resources)["default/laptop"].environment == {"A": "x"}
    assert [line.split(": ")[1] for line in without_effect(resources, 1)] == [
        "spec.runtime.name",
        "spec.runtime.image",
        "spec.runtime.podTemplate",
        "spec.runtime.podTemplate.spec.containers[0].env[1].valueFrom",
    ]


def test_where_a_model_may_run_has_no_effect_on_one_machine() -> None:
    spread = {"topologySpread": [{"topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule"}]}
    where = {"nodeSelector": {"disk": "ssd"}, "footprint": {"gpuMemory": "1Gi", "gpuType": {"products": ["NVIDIA-L4"]}}}
    resources = [declared.model("m", **where), declared.ensemble("e", "m", **spread, antiAffinity=[{"name": "n"}])]
    assert [line.split(": ")[:2] for line in without_effect(resources, 1)] == [
        ["InferenceModel default/m", "spec.nodeSelector"],
        ["InferenceModel default/m", "spec.footprint.gpuType"],
        ["Ensemble default/e", "spec.topologySpread"],
        ["Ensemble default/e", "spec.antiAffinity"],
    ]
    here = for_this_machine(resources, 1)
    assert [member.spec.node_selector for member in here] == [{}, {}]
    assert here[1].spec.topology_spread == ()
    assert here[0].spec.footprint.gpu_type is None


def test_a_machine_with_one_gpu_has_none_to_set_free() -> None:
    auto = [declared.pool(packing={"consolidate": "Auto", "preemption": "LowerPriority"})]
    (line,) = without_effect(auto, 1)
    assert line == (
        "ServingPool default/p: spec.packing.consolidate: this machine has 1 GPU, and none comes free by a move"
    )
    assert without_effect(auto, 2) == without_effect([declared.pool()], 0) == []


def test_one_machine_preempts_for_a_higher_priority_too() -> None:
    now, low = datetime(2026, 1, 1, tzinfo=UTC), declared.model("low", memory=60)
    resources = [declared.pool(packing={"preemption": "LowerPriority"}), low]
    here = FleetSnapshot(for_this_machine(resources, 1), (declared.gpu_node("here", 1),))
    here = reconcile(here, now).after(here)
    more = for_this_machine([*resources, declared.model("high", memory=60, priority=5)], 1)
    (pool,) = reconcile(replace(here, resources=more), now + timedelta(seconds=5)).plan.pools
    assert [one.group for one in pool.unplaced] == ["low"]


def test_a_template_of_variables_alone_is_all_in_effect(workspace: Any) -> None:
    runtime = "podTemplate: {spec: {containers: [{name: server, env: [{name: A}]}]}}"
    resources = pool_of(workspace, runtime)
    assert settings(resources)["default/laptop"].environment == {"A": ""}
    assert without_effect(resources, 1) == []


def test_a_pools_flags_reach_its_servers(workspace: Any, tmp_path: Path) -> None:
    resources = pool_of(
        workspace,
        "args: [--log-verbose=1]",
        ", rateLimit: {}, cache: {size: 1Mi}, tracing: {endpoint: http://otel:4318/v1/traces}",
    )
    server_settings = settings(resources)["default/laptop"]
    assert server_settings.flags == (
        "--rate-limit=execution_count",
        "--cache-config=local,size=1048576",
        "--trace-config=mode=opentelemetry",
        "--trace-config=opentelemetry,url=http://otel:4318/v1/traces",
        "--trace-config=level=TIMESTAMPS",
        "--trace-config=rate=1000",
        "--log-verbose=1",
    )
    command = Command(tmp_path / "models", "127.0.0.1", Ports(1, 2, 3), settings=server_settings)
    command.control_token.write_text("a" * 32)
    options = flags.parse(command.arguments()[3:])
    assert options.log.log_verbose_level == 1
    assert options.without_effect == ()
    assert (options.repository.cache_bytes, options.repository.rate_limits) == (1048576, ())


def test_what_is_written_is_read_again_with_its_history(workspace: Any, documents: Any) -> None:
    workspace.write(documents("one", 1, "x"))
    first, second = datetime(2026, 1, 1, tzinfo=UTC), datetime(2026, 1, 2, tzinfo=UTC)
    before = stamped(read_manifests(workspace.manifests).resources, (), first)
    again = restored({"resources": resource_documents(before, {})})
    workspace.write(documents("one", 2, "x"))
    pool, model = stamped(read_manifests(workspace.manifests).resources, again, second)
    assert (pool.metadata.generation, model.metadata.generation) == (1, 2)
    assert pool.metadata.creation_timestamp == model.metadata.creation_timestamp == "2026-01-01T00:00:00Z"


def test_a_state_folder_has_one_owner(tmp_path: Path) -> None:
    folder = StateFolder(tmp_path / "state")
    with folder.locked(), pytest.raises(StateInUseError, match=r"\(pid \d+\)"), folder.locked():
        pass
    assert not folder.is_locked()
    with folder.locked():
        assert folder.is_locked()
        folder.create()
    assert not folder.is_locked()
    folder.write_status({"a": 1})
    assert folder.read_status() == {"a": 1}
    assert (folder.root / ".gitignore").read_text() == "*\n"


def test_lines_are_printed_only_for_changes() -> None:
    console = Console(width=200, record=True, force_terminal=False)
    view = LineView(console)
    row = Row("InferenceModel", "m", "1", "False", "Progressing", "s CPU", "waiting [bold]")
    server = ServerRow("s", "http://h:1", "h:2", "http://h:3/metrics", live=True)
    view.update([row], [server], {})
    view.update([row], [server], {})
    assert console.export_text().splitlines() == [
        "server s: ready (http http://h:1, grpc h:2, metrics http://h:3/metrics)",
        "InferenceModel m v1: Ready=False (Progressing): waiting [bold]",
    ]


def test_the_table_shows_what_is_under_way() -> None:
    console = Console(width=200, record=True)
    row = Row("InferenceModel", "m", "1", "False", "Progressing", "s CPU", "", doing="fetching version 1: 3 of 9 MiB")
    console.print(models_table([row], {}))
    assert "fetching version 1: 3 of 9 MiB" in console.export_text()


def test_the_table_fits_eighty_columns_with_long_reasons_below() -> None:
    console = Console(width=80, record=True, force_terminal=True)
    view = TableView(console)
    rows = [
        Row("InferenceModel", "detokenize", "1 → 2", "True", "Serving", "assistant-0", "version 1 serves on 1 server"),
        Row("Ensemble", "assistant", "1", "False", "LoadFailed", "assistant-0", "no weights here " * 8),
        Row("ServingPool", "assistant", "", "True", "ServersReady", "", "servers that answer: 1 of 1"),
    ]
    server = ServerRow("assistant-0", "http://127.0.0.1:8000", "127.0.0.1:8001", "http://127.0.0.1:8002/metrics", True)
    view.update(rows, [server], {"detokenize": Rate(10.0, 2.0, 1.5, 120.25)})
    view.close()
    lines = [line.rstrip() for line in console.export_text().splitlines() if line.strip()]
    assert any(line.startswith("model     detokenize  1 → 2  Ready        assistant-0   10.0") for line in lines)
    assert any("2.0 requests a second fail" in line for line in lines)
    assert any(line.count("no weights here") == 4 for line in lines)
    assert "assistant-0  ready  127.0.0.1:8000  127.0.0.1:8001  127.0.0.1:8002/metrics" in lines
    assert lines[-1] == "2 of 3 are Ready. Ctrl-C drains and stops."


def test_problems_of_an_edit_stand_below_the_table_until_solved() -> None:
    console = Console(width=120, record=True, force_terminal=True)
    view = TableView(console)
    row = Row("InferenceModel", "m", "1", "False", "UnknownPool", "s", "said once, as a problem")
    view.problems([Problem("all.yaml", "InferenceModel default/m", "spec.poolRef", "there is none")])
    view.update([row], [], {})
    text = console.export_text()
    assert "all.yaml: InferenceModel default/m: spec.poolRef: there is none" in text
    assert "said once" not in text
    view.problems([])
    view.update([row], [], {})
    view.close()
    assert "there is none" not in console.export_text().split("said once")[-1]


def test_what_may_scale_to_zero_is_reported_to_stay(workspace: Any, documents: Any) -> None:
    workspace.write_model("double", 2.0)
    workspace.write(documents("one", 1, "double").replace("version: 1", "version: 1\n  minReplicas: 0", 1))
    (line,) = without_effect(read_manifests(workspace.manifests).resources, 1)
    assert "spec.minReplicas: it does not go to zero" in line


def test_a_models_secret_is_reported_to_be_without_effect_here(workspace: Any, documents: Any) -> None:
    workspace.write_model("double", 2.0)
    text = documents("one", 1, "double")
    workspace.write(text.replace("version: 1", "version: 1\n  storage: {secretName: team}", 1))
    resources = read_manifests(workspace.manifests).resources
    assert [line.split(": ")[1] for line in without_effect(resources, 1)] == ["spec.storage.secretName"]
    (one,) = [resource for resource in for_this_machine(resources, 0) if resource.name == "one"]
    assert not one.spec.storage.secret_name


@pytest.mark.parametrize(
    ("phase", "candidate", "shown"),
    [("Stepping", 3, "2 → 3"), ("RollingBack", 3, "2"), ("Promoted", None, "2")],
)
def test_the_version_of_an_ensemble_is_the_one_that_the_operator_numbered(phase, candidate, shown) -> None:
    versions = {"stable": {"revision": "a", "version": 2}}
    versions |= {"candidate": {"revision": "b", "version": candidate}} if candidate else {}
    rollout = RolloutStatus.model_validate({"phase": phase, **versions})
    declared = ensemble("chat", "tokenizer")
    (row,) = rows([declared], {declared.identity: EnsembleStatus(active_version=2, rollout=rollout)}, {})
    assert row.version == shown


def test_the_login_of_a_prometheus_is_reported_to_be_without_effect_here() -> None:
    (line,) = without_effect([pool(monitoring={"prometheus": {"url": "http://p:9090", "secretName": "login"}})], 1)
    assert "spec.monitoring.prometheus.secretName: there is no cluster to read it from" in line


ENGINE = """
---
apiVersion: argosy.dev/v1alpha1
kind: InferenceModel
metadata: {name: small}
spec:
  poolRef: {name: laptop}
  modelFormat: {name: onnx}
  version: 1
  storageUri: file:small.onnx
  footprint: {device: CPU}
  engine:
    builder: onnxruntime
    precision: int8
    image: registry/builder:1
    calibration: {dataUri: "file:data.npz"}
    accuracy: {skip: measured elsewhere}
"""


def test_render_writes_no_engine_that_is_not_built(workspace: Any, capsys: pytest.CaptureFixture[str]) -> None:
    workspace.write(ENGINE)
    with pytest.raises(typer.Exit) as refused:
        render([workspace.manifests], workspace.root / "out")
    assert refused.value.exit_code == 1
    assert "InferenceModel default/small: spec.engine: nothing is built here" in capsys.readouterr().err
    render([workspace.manifests], workspace.root / "out", config_only=True)
    assert (workspace.root / "out" / "laptop-0" / "small" / "config.pbtxt").is_file()


def test_an_engines_data_is_next_to_its_manifest_and_its_image_ignored(workspace: Any) -> None:
    workspace.write(ENGINE)
    resources = read_manifests(workspace.manifests).resources
    (model,) = (resource for resource in resources if resource.kind == "InferenceModel")
    assert model.spec.engine is not None
    assert model.spec.engine.calibration.data_uri == (workspace.manifests / "data.npz").as_uri()
    assert any(
        "spec.engine.image: the builder is a process of this machine" in line for line in without_effect(resources, 1)
    )
    pool, here = for_this_machine(resources, 0, workspace.root / "engines")
    assert here.spec.engine.image is None  # type: ignore[union-attr]
    assert pool.spec.storage.engine_cache.storage_uri == (workspace.root / "engines").as_uri()  # type: ignore[union-attr]


def test_builds_are_identified_by_phase_and_drawn_with_a_bar() -> None:
    build = BuildRow("b", "small", "onnxruntime int8 amd64", "Building", "quantize", 45, "MatMul 3 of 9")
    with Console(record=True, width=120, force_terminal=False).capture() as _:
        console = Console(record=True, width=120)
        LineView(console).update([], [], {}, [build, build])
        assert console.export_text().strip() == "build of small (onnxruntime int8 amd64): quantize"
        console.print(builds_table([build]))
        drawn = console.export_text()
    assert "45" in drawn
    assert "MatMul 3 of 9" in drawn


def test_a_cpus_architecture_is_as_kubernetes_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for machine, name in {"x86_64": "amd64", "aarch64": "arm64", "AMD64": "amd64", "riscv64": "riscv64"}.items():
        monkeypatch.setattr("platform.machine", lambda machine=machine: machine)
        assert cpu_node().labels == {"kubernetes.io/arch": name}
        assert cpu_node().architecture(on_gpu=False) == name
