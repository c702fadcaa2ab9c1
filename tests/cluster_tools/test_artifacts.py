"""Artifacts that are made byte by byte or by openssl are valid."""

import io
import json
import platform
import signal
import ssl
import subprocess
import tarfile
from pathlib import Path

import pytest
import yaml
from e2e.cluster import ClusterUnavailableError
from e2e.cluster.node import pause_image
from e2e.cluster.plane import kubeconfig
from e2e.cluster.plane.certificates import Authority
from e2e.cluster.plane.kubeconfig import Credentials
from e2e.cluster.programs import packages
from e2e.cluster.waiting import poll
from e2e.starting import give_up


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the pause program is x86-64")
def test_the_pause_program_runs_and_waits(tmp_path: Path) -> None:
    program = tmp_path / "pause"
    program.write_bytes(pause_image.program())
    program.chmod(0o755)
    with subprocess.Popen([program]) as process:
        state = Path(f"/proc/{process.pid}/stat")
        assert poll(lambda: state.read_text().rpartition(")")[2].split()[0] == "S", 60)
        process.send_signal(signal.SIGKILL)
        assert process.wait(60) == -signal.SIGKILL


def test_the_pause_image_is_an_archive_whose_parts_refer_to_one_another() -> None:
    with tarfile.open(fileobj=io.BytesIO(pause_image.archive())) as archive:
        (manifest,) = json.load(archive.extractfile("manifest.json"))  # type: ignore[arg-type]
        assert manifest["RepoTags"] == [pause_image.NAME]
        assert {manifest["Config"], *manifest["Layers"]} <= set(archive.getnames())


@pytest.fixture
def openssl() -> None:
    try:
        packages.ensure([packages.OPENSSL])
    except ClusterUnavailableError as error:
        give_up(error)


@pytest.mark.usefixtures("openssl")
def test_certificates_say_who_and_are_signed(tmp_path: Path) -> None:
    authority = Authority(tmp_path / "ca")
    authority.create()
    certificate, key = authority.client("joe", "joe", ("team/a", "b"))
    ssl.create_default_context(cafile=str(authority.certificate)).load_cert_chain(certificate, key)
    shown = subprocess.run(
        ["openssl", "x509", "-in", certificate, "-noout", "-subject", "-nameopt", "RFC2253"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert shown.stdout.strip() == "subject=CN=joe,O=b,O=team/a"
    checked = subprocess.run(["openssl", "verify", "-CAfile", authority.certificate, certificate], capture_output=True)
    assert checked.returncode == 0


def test_a_kubeconfig_holds_everything_and_is_its_owners_alone(tmp_path: Path) -> None:
    ca = tmp_path / "ca.crt"
    ca.write_text("certificate")
    content = kubeconfig.document("https://127.0.0.1:1", ca, Credentials(token="secret"), "team")
    path = kubeconfig.write(tmp_path / "config", content)
    assert path.stat().st_mode & 0o077 == 0
    read = yaml.safe_load(path.read_text())
    assert read["users"][0]["user"] == {"token": "secret"}
    assert read["contexts"][0]["context"]["namespace"] == "team"
