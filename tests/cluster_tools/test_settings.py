"""What is read from the machine: apt's sources, pip's settings, versions."""

import tomllib
from pathlib import Path

import pytest
from e2e.cluster.errors import ClusterUnavailableError
from e2e.cluster.programs import binaries, upstream
from e2e.cluster.programs.binaries import parse_version
from e2e.cluster.programs.debian_archive import Mirror, parse_sources

from argosy_common import pip_settings

DEB822 = """\
Types: deb
# a comment
URIs: http://mirror.example/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/debian.gpg

Types: deb
URIs: http://mirror.example/debian-security
Suites: bookworm-security
"""
ONE_LINE = """\
# deb http://commented.example/debian bookworm main
deb-src http://sources.example/debian bookworm main
deb [arch=amd64 signed-by=/keys/a.gpg] http://mirror.example/debian bookworm main
deb http://other.example/debian bookworm-updates main
deb http://plain.example/debian bookworm main
"""


def test_apt_sources_of_the_newer_format() -> None:
    mirrors = list(parse_sources(DEB822, deb822=True))
    assert mirrors == [Mirror("http://mirror.example/debian", "/usr/share/keyrings/debian.gpg")]


def test_apt_sources_of_the_older_format() -> None:
    mirrors = list(parse_sources(ONE_LINE, deb822=False))
    assert mirrors == [
        Mirror("http://mirror.example/debian", "/keys/a.gpg"),
        Mirror("http://plain.example/debian", None),
    ]


def test_pip_settings_keep_what_says_where_and_the_environment_wins(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pip_settings, "CERTIFICATES", tmp_path / "absent")
    (tmp_path / "index" / "simple").mkdir(parents=True)
    (tmp_path / "wheels").mkdir()
    listed = "\n".join([
        ":env:.index-url='https://env.example/simple'",
        "global.cache-dir='/somewhere'",
        f"global.extra-index-url='file://{tmp_path}/index/simple https://more.example/simple'",
        "global.constraint='/etc/constraints.txt'",
        f"global.find-links='{tmp_path}/wheels {tmp_path}/gone'",
        "global.index-url='https://file.example/simple'",
    ])  # fmt: skip
    settings = pip_settings.parse(listed)
    assert settings.config.splitlines() == [
        "[global]",
        f"extra-index-url = file://{tmp_path}/index/simple https://more.example/simple",
        f"find-links = {tmp_path}/wheels",
        "index-url = https://env.example/simple",
    ]
    assert tomllib.loads(settings.uv) == {
        "index-strategy": "unsafe-best-match",
        "system-certs": True,
        "extra-index-url": [f"file://{tmp_path}/index/simple", "https://more.example/simple"],
        "find-links": [f"{tmp_path}/wheels"],
        "index-url": "https://env.example/simple",
    }
    assert settings.folders == (tmp_path / "index", tmp_path / "wheels")
    assert settings.constraints == (Path("/etc/constraints.txt"),)
    assert settings.has_sources
    assert not pip_settings.parse("global.cache-dir='/somewhere'").has_sources


@pytest.mark.parametrize(
    ("text", "version"), [("Kubernetes v1.20.2", (1, 20)), ("Kubernetes v1.31.0-rc.1+abc\n", (1, 31))]
)
def test_versions(text: str, version: tuple[int, int]) -> None:
    assert parse_version(text) == version


def test_without_any_programs_the_error_names_every_location(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def out_of_reach(cache: Path) -> Path:
        raise ClusterUnavailableError("no way out")

    for name in ("ARGOSY_KUBE_BUILD", "CI"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(binaries, "_failures", {})
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path / "assets"))
    monkeypatch.setattr(binaries, "CACHE", tmp_path / "cache")
    monkeypatch.setattr(binaries, "TARBALL", tmp_path / "none.tar.xz")
    monkeypatch.setattr(upstream, "download", out_of_reach)
    with pytest.raises(ClusterUnavailableError) as raised:
        binaries.find()
    text = str(raised.value)
    for location in ("KUBEBUILDER_ASSETS", "cache", "none.tar.xz", "no way out", "ARGOSY_KUBE_BUILD=1"):
        assert location in text
    assert "\n" not in text
