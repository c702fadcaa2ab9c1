"""The agent's command line: what it takes, and what it says of what it does not take."""

from pathlib import Path

import pytest

from argosy_agent.contract.documents import ConfigMapName
from argosy_agent.flags import SERVICE_ACCOUNT, ConfigMaps, Files, parse, quantity

BASE = ("--server=http://127.0.0.1:8000/", "--folder=/models")
MAPS = ("--configmap=serving/pool-0", "--state=serving/pool-0-state")


def test_a_pods_flags() -> None:
    flags = parse([*BASE, *MAPS, "--cache-size=200Gi", "--pod=uid", "--log=debug"])
    assert flags.server == "http://127.0.0.1:8000"
    assert (flags.folder, flags.cache, flags.pvc_root) == (Path("/models"), Path("/models/cache"), Path("/pvc"))
    assert flags.cache_size == 200 * 2**30
    assert (flags.pod, flags.log) == ("uid", "debug")
    desired, state = ConfigMapName("serving", "pool-0"), ConfigMapName("serving", "pool-0-state")
    assert flags.documents == ConfigMaps(desired, state, SERVICE_ACCOUNT)


def test_files_instead(tmp_path: Path) -> None:
    desired, state = tmp_path / "repository.json", tmp_path / "state.json"
    flags = parse([*BASE, f"--desired={desired}", f"--state-file={state}", "--cache=/cache"])
    assert flags.documents == Files(desired, state)
    assert (flags.cache, flags.cache_size) == (Path("/cache"), None)


@pytest.mark.parametrize(
    ("words", "size"),
    [("0", 0), ("1500", 1500), ("1k", 1000), ("2M", 2 * 10**6), ("1.5Gi", 3 * 2**29), ("3Ti", 3 * 2**40)],
)
def test_amounts(words: str, size: int) -> None:
    assert quantity(words) == size


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "the following arguments are required: --server, --folder"),
        ([*BASE], "give either --configmap and --state, or --desired and --state-file"),
        ([*BASE, MAPS[0]], "give either --configmap and --state"),
        ([*BASE, *MAPS, "--desired=/tmp/x"], "give either --configmap and --state"),
        ([*BASE, "--configmap=pool-0", MAPS[1]], "argument --configmap: 'pool-0' is not NAMESPACE/NAME"),
        ([*BASE, "--configmap=a/b/c", MAPS[1]], "argument --configmap: 'a/b/c' is not NAMESPACE/NAME"),
        ([*BASE, *MAPS, "--cache-size=10GiB"], "argument --cache-size: '10GiB' is no amount of bytes"),
        ([*BASE, *MAPS, "--cache-size=-1"], "'-1' is no amount of bytes"),
        ([*BASE, *MAPS, "--server=localhost:8000"], "argument --server: 'localhost:8000' is no URL of a server"),
        ([*BASE, *MAPS, "--drain-quiet-secs=soon"], "argument --drain-quiet-secs: invalid seconds value: 'soon'"),
        ([*BASE, *MAPS, "--log=loud"], "argument --log: invalid choice: 'loud'"),
        ([*BASE, "--desired=/no/such/file", "--state-file=/tmp/x"], "argument --desired: there is no folder /no/such"),
    ],
)
def test_what_is_wrong_is_named(arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(arguments)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err
