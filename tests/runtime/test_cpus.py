"""The processors that a process may use, by files as the kernel writes them."""

import os
from pathlib import Path

import pytest

from argosy_runtime import cpus


def machine(root: Path, groups: str, files: dict[str, str]) -> Path:
    """Write the files of a kernel: this process's groups, and their settings."""
    for name, text in {"proc/self/cgroup": groups, **{f"sys/fs/cgroup/{k}": v for k, v in files.items()}}.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.mark.parametrize(
    ("groups", "files", "expected"),
    [
        ("0::/\n", {"cpu.max": "200000 100000\n"}, 2),
        ("0::/\n", {"cpu.max": "150000 100000\n"}, 2),
        ("0::/\n", {"cpu.max": "20000 100000\n"}, 1),
        ("0::/\n", {"cpu.max": "max 100000\n"}, 64),
        ("0::/pod/server\n", {"pod/cpu.max": "300000 100000\n", "pod/server/cpu.max": "max 100000\n"}, 3),
        ("0::/../../elsewhere\n", {"cpu.max": "400000 100000\n"}, 4),
        ("4:memory:/x\n2:cpu,cpuacct:/x\n", {"cpu,cpuacct/x/cpu.cfs_quota_us": "250000\n"}, 64),
        (
            "4:memory:/x\n2:cpu,cpuacct:/x\n",
            {"cpu,cpuacct/x/cpu.cfs_quota_us": "250000\n", "cpu,cpuacct/x/cpu.cfs_period_us": "50000\n"},
            5,
        ),
        (
            "1:cpu:/kubepods/a\n0::/\n",
            {"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"},
            64,
        ),
        (
            "1:cpu:/kubepods/a\n0::/\n",
            {"cpu/cpu.cfs_quota_us": "700000\n", "cpu/cpu.cfs_period_us": "100000\n"},
            7,
        ),
        ("0::/\n", {}, 64),
        ("0::/\n", {"cpu.max": "nonsense"}, 64),
    ],
)
def test_the_quota_bounds_the_affinity(tmp_path: Path, groups: str, files: dict[str, str], expected: int) -> None:
    assert cpus.cpus_within(64, machine(tmp_path, groups, files)) == expected


def test_without_such_files_the_affinity_counts(tmp_path: Path) -> None:
    assert cpus.cpus_within(3, tmp_path) == 3


def test_a_quota_beyond_the_affinity_does_not_matter(tmp_path: Path) -> None:
    assert cpus.cpus_within(2, machine(tmp_path, "0::/\n", {"cpu.max": "800000 100000\n"})) == 2


@pytest.mark.parametrize(("usable", "limit"), [(2, 2), (63, 63), (64, None)])
def test_the_full_machine_is_no_limit(monkeypatch: pytest.MonkeyPatch, usable: int, limit: int | None) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 64)
    monkeypatch.setattr(cpus, "cpus_within", lambda affinity, root: usable)
    assert cpus.cpu_limit() == limit


@pytest.mark.parametrize(("limit", "omp_threads", "expected"), [(2, None, "2"), (2, "8", "8"), (None, None, None)])
def test_the_environment_gets_the_number_where_there_is_a_limit(
    monkeypatch: pytest.MonkeyPatch, limit: int | None, omp_threads: str | None, expected: str | None
) -> None:
    monkeypatch.setattr(cpus, "cpu_limit", lambda: limit)
    monkeypatch.setenv("OMP_NUM_THREADS", "")
    monkeypatch.delenv("OMP_NUM_THREADS")
    if omp_threads is not None:
        monkeypatch.setenv("OMP_NUM_THREADS", omp_threads)
    cpus.limit_threads()
    assert os.environ.get("OMP_NUM_THREADS") == expected
