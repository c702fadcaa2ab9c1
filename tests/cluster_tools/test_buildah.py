"""What a build does when buildah itself fails, which here is a script."""

from pathlib import Path

import pytest
from e2e.cluster import ClusterError
from e2e.cluster.images import buildah

BUSY = "Close_Fd sealing memfd copy: Device or resource busy"
SCRIPT = """\
#!/bin/sh
case "$*" in *" bud "*) ;; *) echo the-id; exit 0 ;; esac
echo "$*" >> {folder}/builds
[ "$(wc -l < {folder}/builds)" -gt {times} ] && exit 0
echo "{error}" >&2
exit 1
"""


class Builds:
    """A folder in which `buildah` fails so many times."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def fail(self, times: int, error: str) -> None:
        """Fail so many times, with this error on standard error."""
        script = self._folder / "buildah"
        script.write_text(SCRIPT.format(folder=self._folder, times=times, error=error))
        script.chmod(0o755)

    @property
    def commands(self) -> list[str]:
        """Each build that was begun."""
        return (self._folder / "builds").read_text().splitlines()


@pytest.fixture
def builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Builds:
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    monkeypatch.setattr(buildah, "ensure_base", lambda: None)
    monkeypatch.setattr(buildah, "CACHE", tmp_path)
    return Builds(tmp_path)


def test_a_step_that_could_not_begin_is_begun_again(builds: Builds, tmp_path: Path) -> None:
    builds.fail(2, BUSY)
    assert buildah.build(tmp_path / "Dockerfile", tmp_path, "localhost/a:1") == "the-id"
    assert len(builds.commands) == 3
    assert len(set(builds.commands)) == 1


def test_not_for_ever(builds: Builds, tmp_path: Path) -> None:
    builds.fail(99, BUSY)
    with pytest.raises(ClusterError, match=BUSY):
        buildah.build(tmp_path / "Dockerfile", tmp_path, "localhost/a:1")
    assert len(builds.commands) == buildah.TRIES


def test_what_a_dockerfile_does_wrong_is_reported_at_once(builds: Builds, tmp_path: Path) -> None:
    builds.fail(1, "RUN false: exit status 1")
    with pytest.raises(ClusterError, match="exit status 1"):
        buildah.build(tmp_path / "Dockerfile", tmp_path, "localhost/a:1")
    assert len(builds.commands) == 1
