"""The flags of tracing, and Triton's texts for wrong ones."""

import pytest

from argosy_runtime.flags import parse
from argosy_runtime.telemetry.tracing.options import TraceMode, TraceOptions
from argosy_runtime.traces import TraceLevel

BASE = ["--model-repository=/models"]
BATCHES = (("bsp_max_queue_size", "2048"), ("bsp_schedule_delay", "5000"), ("bsp_max_export_batch_size", "512"))


def test_nothing_is_traced_by_default():
    assert parse(BASE).tracing == TraceOptions()


def test_settings_of_tritons_mode():
    words = ["level=TIMESTAMPS", "level=tensors", "rate=5", "count=7", "mode=triton", "triton,file=/tmp/a,b=c"]
    flags = [f"--trace-config={word}" for word in [*words, "triton,log-frequency=9"]]
    both = TraceLevel.TIMESTAMPS | TraceLevel.TENSORS
    assert parse([*BASE, *flags]).tracing == TraceOptions(both, 5, 7, 9, "/tmp/a,b=c")


def test_deprecated_flags_count_where_there_is_no_newer_one():
    old = ["--trace-file=f", "--trace-level=TIMESTAMPS", "--trace-rate=3", "--trace-count=4", "--trace-log-frequency=5"]
    assert parse([*BASE, *old]).tracing == TraceOptions(TraceLevel.TIMESTAMPS, 3, 4, 5, "f")
    newer = ["--trace-config", "rate=30", "--trace-config=triton,file=g"]
    assert parse([*BASE, *old, *newer]).tracing == TraceOptions(TraceLevel.TIMESTAMPS, 30, 4, 5, "g")


def test_off_counts_more_than_any_level():
    flags = ["--trace-level=max", "--trace-config=level=OFF"]
    assert parse([*BASE, *flags]).tracing.level is TraceLevel.OFF


def test_settings_of_opentelemetry(monkeypatch):
    words = ["mode=opentelemetry", "level=on", "opentelemetry,url=http://h:4318/v1/traces"]
    words += ["opentelemetry,resource=service.name=x", "opentelemetry,resource=zone=a,b", "rate=0"]
    flags = [f"--trace-config={word}" for word in words]
    settings = (("url", "http://h:4318/v1/traces"), ("resource", "service.name=x"), ("resource", "zone=a,b"))
    options = parse([*BASE, *flags]).tracing
    assert options == TraceOptions(
        TraceLevel.TIMESTAMPS, rate=0, mode=TraceMode.OPENTELEMETRY, config=(*settings, *BATCHES)
    )
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "7")
    flags.append("--trace-config=opentelemetry,bsp_max_queue_size=9")
    batches = {"bsp_max_queue_size": "9", "bsp_schedule_delay": "7", "bsp_max_export_batch_size": "512"}
    assert dict(parse([*BASE, *flags]).tracing.config).items() >= batches.items()


def test_what_changes_nothing_is_reported():
    flags = ["--trace-config=foo=1", "--trace-config=opentelemetry,url=http://h", "--trace-config=triton,bar=2"]
    expected = ("--trace-config=foo", "--trace-config=opentelemetry,url", "--trace-config=triton,bar")
    assert parse([*BASE, *flags]).without_effect == expected


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--trace-config=,a=b", "No trace mode specified. --trace-config option format is <trace mode>,<setting>="),
        ("--trace-config=rate", "--trace-config option format is '<trace mode>,<setting>=<value>'. Got rate"),
        ("--trace-config=rate=", "--trace-config option format is '<trace mode>,<setting>=<value>'. Got rate="),
        ("--trace-config=zipkin,a=b", "invalid value for trace mode option: zipkin. Available options are"),
        ("--trace-config=mode=zipkin", "invalid value for trace mode option: zipkin. Available options are"),
        ("--trace-config=level=LOUD", "invalid value for trace level option: LOUD"),
        ("--trace-level=LOUD", "invalid value for trace level option: LOUD"),
        ("--trace-config=rate=x", 'Bad option: "--trace-config rate"'),
        ("--trace-rate=x", "Invalid option value. Got x"),
        ("--trace-config=triton,log-frequency=x", 'Bad option: "--trace-config triton,log-frequency"'),
    ],
)
def test_wrong_flags_end_the_command_line(flag: str, message: str, capsys):
    with pytest.raises(SystemExit):
        parse([*BASE, flag])
    assert message in capsys.readouterr().err


def test_wrong_settings_of_batches_end_it_too(capsys):
    with pytest.raises(SystemExit):
        parse([*BASE, "--trace-config=mode=opentelemetry", "--trace-config=opentelemetry,bsp_schedule_delay=x"])
    assert 'Bad option: "--trace-config opentelemetry,bsp_schedule_delay"' in capsys.readouterr().err
