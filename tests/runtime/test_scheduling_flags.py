"""The flags of the response cache, the rate limiter, host policies and metrics, in Triton's forms and words."""

import pytest

from argosy_runtime.backends.contract import HostPolicy
from argosy_runtime.flags import parse
from argosy_runtime.scheduling.limits.resources import ResourceLimit

BASE = ["--model-repository=/models"]


@pytest.mark.parametrize(
    ("words", "size"),
    [
        ([], 0),
        (["--cache-config=local,size=1048576"], 1 << 20),
        (["--cache-config=local,size=256Mi"], 256 << 20),
        (["--cache-config", "local,size=10", "--cache-config", "local,size=20"], 20),
        (["--response-cache-byte-size=300"], 300),
        (["--cache-config=local,size=7", "--cache-directory=/caches"], 7),
    ],
)
def test_the_size_of_the_cache(words, size):
    assert parse([*BASE, *words]).repository.cache_bytes == size


def test_the_older_flag_of_the_cache_names_the_newer_one(capsys):
    parse([*BASE, "--response-cache-byte-size=300"])
    assert "The equivalent --cache-config CLI args would be: '--cache-config=local,size=300'" in capsys.readouterr().err


def test_the_rate_limiter_is_off_unless_a_flag_turns_it_on():
    resources = ["--rate-limit-resource=R1:10", "--rate-limit-resource", "R2:5:1"]
    assert parse([*BASE, *resources]).repository.rate_limits is None
    assert parse([*BASE, "--rate-limit=OFF"]).repository.rate_limits is None
    on = parse([*BASE, "--rate-limit=Execution_Count", *resources]).repository.rate_limits
    assert on == (ResourceLimit("R1", 10), ResourceLimit("R2", 5, 1))
    assert parse([*BASE, "--rate-limit=execution_count"]).repository.rate_limits == ()


def test_host_policies_gather_their_settings():
    words = [
        "--host-policy=cpu,cpu-cores=0-2,5-5",
        "--host-policy",
        "cpu,numa-node=1",
        "--host-policy=gpu_0,numa-node=0",
    ]
    assert parse([*BASE, *words]).repository.host_policies == {
        "cpu": HostPolicy((0, 1, 2, 5), 1),
        "gpu_0": HostPolicy((), 0),
    }


def test_metrics_settings():
    words = ["--metrics-config=summary_latencies=true", "--metrics-config", "summary_quantiles=0.5:0.1,0.9:0.01"]
    settings = parse([*BASE, *words]).repository.metrics
    assert (settings.summaries, settings.quantiles) == (True, ((0.5, 0.1), (0.9, 0.01)))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ["--cache-config=local"],
            "No cache specified. --cache-config option format is <cache name>,<setting>=<value>",
        ),
        (["--cache-config=,size=1"], "No cache specified. --cache-config option format"),
        (["--cache-config=local,size"], "--cache-config option format is '<cache name>,<setting>=<value>'. Got local"),
        (["--cache-config=local,size="], "--cache-config option format is '<cache name>,<setting>=<value>'"),
        (
            ["--cache-config=redis,host=h"],
            "unable to find 'libtritoncache_redis.so' for cache. Searched: /opt/tritonse",
        ),
        (
            ["--cache-config=local,sizes=1"],
            "Failed to initialize LocalCache: config didn't contain a valid 'size' field",
        ),
        (["--cache-config=local,size=big"], "Failed to initialize LocalCache: "),
        (["--cache-config=local,size=256 bytes"], "Failed to initialize LocalCache: size "),
        (["--cache-config=local,size=-1"], "Failed to initialize LocalCache: "),
        (["--cache-config=local,size=0"], "Failed to initialize LocalCache: "),
        (["--response-cache-byte-size=0"], "Failed to initialize LocalCache: "),
        (
            ["--response-cache-byte-size=1", "--cache-config=local,size=1"],
            "Incompatible flags --response-cache-byte-siz",
        ),
        (["--rate-limit=sometimes"], "invalid argument for --rate-limit"),
        (
            ["--rate-limit-resource=R"],
            "option format is '<resource_name>:<count>:<device>' or '<resource_name>:<count>'",
        ),
        (["--rate-limit-resource=R:1:2:3"], "Got R:1:2:3"),
        (["--rate-limit-resource=R:x"], "Invalid option value. Got x"),
        (["--host-policy=cpu"], "--host-policy option format is '<policy name>,<setting>=<value>'. Got cpu"),
        (
            ["--host-policy=cpu,nodes=1"],
            "Unsupported host policy setting 'nodes' is specified, supported settings are 'n",
        ),
        (["--host-policy=cpu,cpu-cores=3"], "format is '<lower_cpu_core_id>-<upper_cpu_core_id>'. Got 3"),
        (["--host-policy=cpu,cpu-cores=0-x"], "Parsing 'cpu-cores' value: Can't parse 'x' to integer"),
        (["--host-policy=cpu,numa-node=one"], "Parsing 'numa-node' value: Can't parse 'one' to integer"),
        (["--host-policy=cpu,cpu-cores=5-3"], "names no core"),
        (
            ["--metrics-config=summary_latencies"],
            "--metrics-config option format is <setting>=<value>. Got summary_laten",
        ),
        (["--metrics-config=a,b=c"], "--metrics-config option format is <setting>=<value>"),
        (["--pinned-memory-pool-byte-size=-1"], "Provided option value is out of bound. Got -1"),
    ],
)
def test_a_wrong_flag_ends_the_start_in_tritons_words(words, message, capsys):
    with pytest.raises(SystemExit):
        parse([*BASE, *words])
    assert message in " ".join(capsys.readouterr().err.split())


def test_a_large_range_of_cores_is_not_written_out():
    cores = parse([*BASE, "--host-policy=cpu,cpu-cores=0-99999999999999"]).repository.host_policies["cpu"].cpu_cores
    assert len(cores) < 10_000
