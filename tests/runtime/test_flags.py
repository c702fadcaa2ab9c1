"""tritonserver's command line."""

import math
import subprocess
import sys
from pathlib import Path

import pytest

from argosy_runtime.flags import WITHOUT_EFFECT, parse
from argosy_runtime.flags.ignored_values import wrong_value
from argosy_runtime.frontends.http.clouds.sagemaker import SageMakerOptions
from argosy_runtime.frontends.http.clouds.vertex import VertexAiOptions
from argosy_runtime.frontends.http.wire.timeouts import Timeouts
from argosy_runtime.frontends.restrictions import Api, Restriction
from argosy_runtime.frontends.tls.files import TlsFiles
from argosy_runtime.http2 import KeepAliveRules
from argosy_runtime.repository.options import ControlMode

BASE = ["--model-repository=/models"]


def test_defaults_are_tritons():
    options = parse(BASE)
    assert options.repository.paths == (Path("/models"),)
    assert options.repository.control_mode is ControlMode.NONE
    assert (options.http_port, options.grpc_port, options.metrics_port) == (8000, 8001, 8002)
    assert (options.exit_timeout, options.repository.poll_seconds) == (30, 15)
    assert options.drain.period_s == 0
    assert options.exit_on_error
    assert options.strict_readiness
    assert options.max_input_size == 64 * 2**20
    assert options.log.log_info
    assert options.http_timeouts == Timeouts(head=60, body=60, idle=620)


def test_both_spellings_and_repeated_flags():
    options = parse(
        [
            "--model-repository",
            "/a",
            "--model-store=/b",
            "--model-control-mode=explicit",
            "--load-model=x",
            "--load-model",
            "y",
            "--allow-grpc=False",
            "--log-verbose=1",
            "--exit-on-error=off",
        ]
    )
    assert options.repository.paths == (Path("/a"), Path("/b"))
    assert options.repository.startup_models == ("x", "y")
    assert options.grpc_port is None
    assert options.log.log_verbose_level == 1
    assert not options.exit_on_error


def test_how_long_clients_are_waited_for():
    flags = ["--http-header-timeout-secs=1", "--http-body-timeout-secs=2", "--http-idle-timeout-secs=0"]
    assert parse([*BASE, *flags]).http_timeouts == Timeouts(head=1, body=2, idle=0)


def test_clients_share_memory_only_if_the_flag_allows_it():
    flags = ([], ["--allow-client-shm=false"], ["--allow-client-shm=true"])
    assert [parse([*BASE, *more]).client_shm for more in flags] == [False, False, True]


def test_restricted_apis():
    options = parse(
        [*BASE, "--http-restricted-api=health,metadata:key=secret", "--grpc-restricted-protocol=health:k=v"]
    )
    assert options.http_restricted == {
        Api.HEALTH: Restriction("key", "secret"),
        Api.METADATA: Restriction("key", "secret"),
    }
    assert options.grpc_restricted == {Api.HEALTH: Restriction("triton-grpc-protocol-k", "v")}


def test_a_control_token_restricts_what_changes_the_server(tmp_path: Path):
    file = tmp_path / "token"
    file.write_text("0123456789abcdef\n")
    options = parse([*BASE, f"--control-token-file={file}"])
    groups = {Api.MODEL_REPOSITORY, Api.LOGGING, Api.TRACE, Api.SHARED_MEMORY}
    assert options.http_restricted.keys() == options.grpc_restricted.keys() == groups
    assert {item.header for item in options.http_restricted.values()} == {"authorization"}
    assert {item.value for item in options.http_restricted.values()} == {"Bearer 0123456789abcdef"}
    assert "0123456789abcdef" not in repr(options)


def test_loads_bring_files_unless_there_is_a_control_token(tmp_path: Path):
    file = tmp_path / "token"
    file.write_text("0123456789abcdef")
    token = f"--control-token-file={file}"
    allowed = [
        parse([*BASE, *more]).repository.overrides for more in ([], [token], [token, "--allow-override-files=1"])
    ]
    assert allowed == [True, False, True]


@pytest.mark.parametrize("text", [None, "", "short", "0123456789 abcdef", "0123456789abcdef\nmore", b"\xff" * 20])
def test_a_file_without_a_token_ends_the_start(text: str | bytes | None, tmp_path: Path, capsys):
    file = tmp_path / "token"
    if text is not None:
        file.write_bytes(text.encode() if isinstance(text, str) else text)
    with pytest.raises(SystemExit):
        parse([*BASE, f"--control-token-file={file}"])
    reported = capsys.readouterr().err
    assert "--control-token-file" in reported
    assert str(file) in reported
    assert "0123456789" not in reported


def test_a_group_is_restricted_once(tmp_path: Path, capsys):
    file = tmp_path / "token"
    file.write_text("0123456789abcdef")
    with pytest.raises(SystemExit):
        parse([*BASE, f"--control-token-file={file}", "--http-restricted-api=logging:k=v"])
    assert "'logging' is restricted by --control-token-file" in capsys.readouterr().err


def _value(name: str) -> str:
    """Return a value that any server takes."""
    return next((value for value in ("off", "2", "0:1", "1-2") if not wrong_value(name, value)), "off")


def test_flags_that_change_nothing_are_taken_and_reported():
    words = [f"--{name}={_value(name)}" for name in sorted(WITHOUT_EFFECT)]
    assert parse([*BASE, *words]).without_effect == tuple(f"--{name}" for name in sorted(WITHOUT_EFFECT))
    assert parse([*BASE, "--backend-directory", "/opt/backends"]).without_effect == ("--backend-directory",)


def test_flags_that_switch_off_missing_features_are_reported_once():
    words = ["--sagemaker-thread-count=2", "--enable-peer-access", "off"]
    reported = ("--sagemaker-thread-count", "--enable-peer-access")
    assert parse([*BASE, *words]).without_effect == reported


def test_the_log_goes_to_its_file_behind_what_is_there(tmp_path: Path):
    file = tmp_path / "server.log"
    file.write_text("before\n")
    code = "import logging, sys; from argosy_runtime.flags import parse; out, err = sys.stdout, sys.stderr"
    code += "; parse(sys.argv[1:]).log.install(out, err)"
    command = [sys.executable, "-c", f"{code}; logging.getLogger('a').warning('here')", *BASE, f"--log-file={file}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    before, line = file.read_text().splitlines()
    assert before == "before"
    assert line.endswith("WARNING a: here")
    assert done.stderr == ""
    assert parse([*BASE, f"--log-file={file}"]).log.values()["log_file"] == str(file)


def test_settings_of_backends_are_read_or_reported():
    settings = ["onnxruntime,default-max-batch-size=16", "default-max-batch-size=0", "tensorflow,version=2", "x=y"]
    options = parse([*BASE, *[f"--backend-config={item}" for item in settings]])
    assert [setting.acts for setting in options.repository.backend_settings] == [True, True, False, False]
    assert options.without_effect == ("--backend-config=tensorflow,version", "--backend-config=x")
    assert parse([*BASE, "--backend-config", "x=y"]).without_effect == ("--backend-config=x",)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([*BASE, "--backend-config=onnxruntime"], "'onnxruntime' is not of the form <backend>,<setting>=<value>"),
        ([*BASE, "--backend-config=default-max-batch-size=x"], "default-max-batch-size must be a whole number"),
        ([], "--model-repository"),
        ([*BASE, "--no-such-flag"], "unrecognized option '--no-such-flag'"),
        ([*BASE, "--exit-on-error=maybe"], "invalid value for bool option: maybe"),
        ([*BASE, "--allow-vertex-ai", "true"], "AIP_PREDICT_ROUTE is not defined for Vertex AI endpoint"),
        (
            [*BASE, "--allow-sagemaker=true", "--sagemaker-safe-port-range=9000-9010"],
            "The server cannot listen to SageMaker requests at port 8080, allowed port range is [9000, 9010]",
        ),
        ([*BASE, "--sagemaker-safe-port-range=9000"], "requires format <first>-<second>. Found: 9000"),
        (
            [*BASE, "--model-namespacing=true", "--load-on-demand=true", "--model-control-mode=explicit"],
            "--load-on-demand can only be used with --model-namespacing=false",
        ),
        (
            [*BASE, "--model-load-gpu-limit=0:1.5"],
            "--model-load-gpu-limit: expects limit fraction to be in range [0.0, 1.0], got 1.500000",
        ),
        ([*BASE, "--model-load-gpu-limit=-1:0.5"], "--model-load-gpu-limit: expects device ID >= 0, got -1"),
        ([*BASE, "--model-load-gpu-limit=x:0.5"], "--model-load-gpu-limit: Invalid option value. Got x"),
        ([*BASE, "--model-load-gpu-limit=0"], "argument requires format <first>:<second>. Found: 0"),
        ([*BASE, "--log-file=/nowhere/at/all"], "'/nowhere/at/all' cannot be written: No such file or directory"),
        ([*BASE, "--load-model=x"], "Use of '--load-model' requires setting '--model-control-mode=explicit' as well."),
        ([*BASE, "--http-restricted-api=helth:k=v"], "unknown restricted api 'helth'"),
        ([*BASE, "--grpc-restricted-protocol=helth:k=v"], "unknown restricted protocol 'helth'"),
        ([*BASE, "--grpc-restricted-protocol=openai:k=v"], "'openai' is served over HTTP alone"),
        (
            [*BASE, "--http-restricted-api=health"],
            "--http-restricted-api option format is '<config name>:<setting>=<value>'. Got health",
        ),
        (
            [*BASE, "--http-restricted-api=health,metadata:k=v", "--http-restricted-api=metadata:other=v"],
            "restricted api 'metadata' can not be specified in multiple config groups",
        ),
        (
            [*BASE, "--grpc-restricted-protocol=trace,trace:k=v"],
            "restricted protocol 'trace' can not be specified in multiple config groups",
        ),
        ([*BASE, "--http-max-input-size=0"], "Error: --http-max-input-size must be greater than 0."),
        (
            [*BASE, "--grpc-infer-thread-count=129"],
            "invalid argument for --grpc_infer_thread_count. Must be in the range 2 to 128.",
        ),
        (
            [*BASE, "--grpc-max-response-pool-size=0"],
            "Error: --grpc-max-response-pool-size must be greater than 0.",
        ),
        ([*BASE, "--http-header-forward-pattern=(a"], "'(a' is no regular expression of RE2: "),
        ([*BASE, "--cuda-memory-pool-byte-size=5"], "argument requires format <first>:<second>. Found: 5"),
        ([*BASE, "--metrics-interval-ms=0"], "Provided option value is out of bound. Got 0"),
        ([*BASE, "surplus"], "Unexpected argument: surplus"),
        ([*BASE, "--drain-quiet-secs=-1"], "--drain-quiet-secs: invalid seconds value: '-1'"),
        ([*BASE, "--drain-timeout-secs=inf"], "--drain-timeout-secs: invalid seconds value: 'inf'"),
        ([*BASE, "--model-control-mode=sometimes"], "invalid choice: 'sometimes'"),
    ],
)
def test_wrong_command_lines_name_the_flag(words, message, capsys):
    with pytest.raises(SystemExit) as ended:
        parse(words)
    assert ended.value.code == 2
    usage, error = capsys.readouterr().err.split("argosy serve: error: ")
    assert message in error
    assert usage.count("\n") == 1, "the usage points to the description of the flags, and the error is seen"


def test_keepalive_of_grpc_is_in_milliseconds() -> None:
    rules = parse(
        [
            *BASE,
            "--grpc-keepalive-time=10000",
            "--grpc-keepalive-timeout=500",
            "--grpc-keepalive-permit-without-calls=true",
            "--grpc-http2-min-recv-ping-interval-without-data=1000",
            "--grpc-http2-max-ping-strikes=0",
            "--grpc-max-connection-age=2147483647",
        ]
    ).grpc_keepalive
    assert (rules.time, rules.timeout, rules.permit_without_calls) == (10.0, 0.5, True)
    assert (rules.min_ping_interval, rules.max_ping_strikes, rules.max_age) == (1.0, 0, math.inf)
    assert parse(BASE).grpc_keepalive == KeepAliveRules()


def test_compression_of_grpc_responses() -> None:
    assert parse(BASE).grpc_compression == 0
    assert parse([*BASE, "--grpc-infer-response-compression-level=high"]).grpc_compression == 9


def test_tls_of_grpc() -> None:
    assert parse([*BASE, "--grpc-server-cert=c", "--grpc-server-key=k"]).grpc_tls is None
    named = ["--grpc-server-cert=c", "--grpc-server-key=k", "--grpc-root-cert=r"]
    plain = TlsFiles(certificate="c", key="k")
    assert parse([*BASE, "--grpc-use-ssl=true", *named]).grpc_tls == plain
    assert parse([*BASE, "--grpc-use-ssl-mutual=false", *named]).grpc_tls == plain
    mutual = parse([*BASE, "--grpc-use-ssl-mutual=true", *named]).grpc_tls
    assert mutual == TlsFiles(certificate="c", key="k", clients_root="r")


def test_tls_of_http_and_metrics() -> None:
    assert parse(BASE).http_tls is None
    named = ["--http-server-cert=c", "--http-server-key=k", "--http-root-cert=r"]
    options = parse([*BASE, "--http-use-ssl=true", *named])
    assert options.http_tls == TlsFiles(certificate="c", key="k", flags="http")
    assert options.metrics_tls is None
    options = parse([*BASE, "--metrics-use-ssl-mutual=true", "--metrics-root-cert=m", *named])
    assert options.http_tls is None
    assert options.metrics_tls == TlsFiles(certificate="c", key="k", clients_root="m", flags="metrics")


def test_http_and_grpc_have_patterns_of_their_own() -> None:
    options = parse([*BASE, "--http-header-forward-pattern=^a", "--grpc-header-forward-pattern=^b"])
    assert (options.http_header_forward_pattern, options.grpc_header_forward_pattern) == ("^a", "^b")


def test_an_older_flag_does_not_take_back_the_newer_one() -> None:
    words = ["--disable-auto-complete-config", "--strict-model-config=false"]
    assert not parse([*BASE, *words]).repository.autocomplete
    assert not parse([*BASE, "--strict-model-config=true"]).repository.autocomplete
    assert parse(BASE).repository.autocomplete


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--http-use-ssl=true"], "--http-use-ssl needs --http-server-cert"),
        (["--grpc-use-ssl=true"], "--grpc-use-ssl needs --grpc-server-cert"),
        (["--grpc-use-ssl-mutual=1", "--grpc-server-cert=c", "--grpc-server-key=k"], "needs --grpc-root-cert"),
        (["--grpc-keepalive-time=soon"], "Invalid option value. Got soon"),
        (["--grpc-keepalive-time=-1"], "Provided option value is out of bound. Got -1"),
    ],
)
def test_flags_of_grpc_that_say_nothing(flags: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse([*BASE, *flags])
    assert message in capsys.readouterr().err


KEY = f"sha256:{'0' * 64}"


def test_openais_api_is_on_the_http_port_unless_it_has_its_own():
    assert parse(BASE).openai is not None
    assert parse(BASE).openai_port is None
    own = parse([*BASE, "--openai-port=9000", "--http-address=127.0.0.1"])
    assert (own.openai_address, own.openai_port) == ("127.0.0.1", 9000)
    assert parse([*BASE, "--allow-openai=false"]).openai is None
    assert parse([*BASE, "--allow-http=false"]).openai is None
    assert parse([*BASE, "--allow-http=false", "--openai-port=9000"]).openai is not None


def test_a_file_of_api_keys(tmp_path, capsys, caplog):
    file = tmp_path / "keys"
    file.write_text(KEY)
    options = parse([*BASE, f"--openai-api-keys-file={file}", "--http-restricted-api=inference:x=secret"])
    assert options.openai.guard is not None
    assert not caplog.records
    parse([*BASE, f"--openai-api-keys-file={file}"])
    assert "V2 protocol" in caplog.text
    file.write_text("my key")
    with pytest.raises(SystemExit):
        parse([*BASE, f"--openai-api-keys-file={file}"])
    assert "my key" not in capsys.readouterr().err


@pytest.mark.parametrize("flags", [["--allow-openai=false", "--openai-port=1"], ["--allow-http=false"]])
def test_flags_of_an_api_that_is_not_served(flags, tmp_path, capsys):
    file = tmp_path / "keys"
    file.write_text(KEY)
    with pytest.raises(SystemExit):
        parse([*BASE, f"--openai-api-keys-file={file}", *flags])
    assert "not served" in capsys.readouterr().err


def test_openais_api_has_no_restriction_over_grpc(capsys):
    assert Api.OPENAI in parse([*BASE, "--http-restricted-api=openai:x=secret"]).http_restricted
    with pytest.raises(SystemExit):
        parse([*BASE, "--grpc-restricted-protocol=openai:x=secret"])
    assert "over HTTP alone" in capsys.readouterr().err


def test_sagemaker_serves_the_model_of_its_variables() -> None:
    assert parse(BASE, {}).sagemaker is None
    options = parse([*BASE, "--allow-sagemaker=true", "--sagemaker-port=8081"], {}).sagemaker
    assert options == SageMakerOptions(port=8081, model="unspecified_SAGEMAKER_TRITON_DEFAULT_MODEL_NAME")
    variables = {
        "SAGEMAKER_TRITON_DEFAULT_MODEL_NAME": "m",
        "SAGEMAKER_TRITON_INFERENCE_TYPE": "generate",
        "SAGEMAKER_TRITON_PING_MODE": "live",
    }
    options = parse([*BASE, "--allow-sagemaker=true"], variables).sagemaker
    assert options == SageMakerOptions(port=8080, model="m", kind="generate", ping="live")


def test_a_kind_that_sagemaker_does_not_have_ends_the_start(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parse([*BASE, "--allow-sagemaker=true"], {"SAGEMAKER_TRITON_INFERENCE_TYPE": "what"})
    assert "'what'. Must be one of: infer, generate, generate_stream" in capsys.readouterr().err


def test_vertex_ai_serves_its_port_alone() -> None:
    variables = {
        "AIP_MODE": "PREDICTION",
        "AIP_HTTP_PORT": "8085",
        "AIP_PREDICT_ROUTE": "/predict",
        "AIP_HEALTH_ROUTE": "/health",
        "AIP_STORAGE_URI": "/stored",
    }
    options = parse([], variables)
    assert options.vertex_ai == VertexAiOptions(port=8085, predict_route="/predict", health_route="/health")
    assert (options.http_port, options.grpc_port, options.metrics_port) == (None, None, 8002)
    assert options.repository.paths == (Path("/stored"),)
    options = parse([*BASE, "--allow-http=true", "--allow-vertex-ai=false"], variables)
    assert (options.vertex_ai, options.http_port, options.repository.paths) == (None, 8000, (Path("/models"),))
