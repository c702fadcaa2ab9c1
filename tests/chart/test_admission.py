"""What the chart brings for admission: a certificate that stays, a Service, and what tells the API server of both."""

import base64
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from e2e.cluster import Cluster
from tests.chart.conftest import WITHOUT_CRDS, Release, only

from argosy.api.documents import KINDS
from argosy.cluster.client.kinds import RESOURCES
from argosy.handlers.admission import CERTIFICATE, KEY
from argosy.handlers.resources import PATH

Objects = list[dict[str, Any]]
CONFIGURATION = "ValidatingWebhookConfiguration"


def _webhook(objects: Objects) -> dict[str, Any]:
    (webhook,) = only(objects, CONFIGURATION)["webhooks"]
    return webhook


def _secret(release: Release, cluster: Cluster) -> dict[str, str]:
    return cluster.read("secret", "argosy-admission", "-n", release.namespace)["data"]


def test_the_api_server_is_led_to_the_operators_port(release: Release) -> None:
    objects = release.install(WITHOUT_CRDS, check_fields=True)
    webhook, pod = _webhook(objects), only(objects, "Deployment")["spec"]["template"]
    reference = webhook["clientConfig"]["service"]
    assert reference["path"] == f"/{PATH}"
    (service,) = [
        body for body in objects if body["kind"] == "Service" and body["metadata"]["name"] == reference["name"]
    ]
    assert service["metadata"]["namespace"] == reference["namespace"] == release.namespace
    (port,) = service["spec"]["ports"]
    (container,) = pod["spec"]["containers"]
    assert port["port"] == reference["port"]
    assert port["targetPort"] in [exposed["name"] for exposed in container["ports"]]
    assert service["spec"]["selector"].items() <= pod["metadata"]["labels"].items()
    assert "publishNotReadyAddresses" not in service["spec"]


def test_all_kinds_are_queried_about_and_none_is_delayed(release: Release) -> None:
    webhook = _webhook(release.install(WITHOUT_CRDS))
    (rule,) = webhook["rules"]
    assert set(rule["resources"]) == {RESOURCES[name].plural for name in KINDS}
    assert rule["operations"] == ["CREATE", "UPDATE"]
    assert webhook["failurePolicy"] == "Ignore"
    assert webhook["timeoutSeconds"] <= 5
    assert "namespaceSelector" not in webhook


def test_only_the_watched_namespaces_are_queried_about(release: Release) -> None:
    webhook = _webhook(release.install({**WITHOUT_CRDS, "watchNamespaces": ["default"]}))
    (term,) = webhook["namespaceSelector"]["matchExpressions"]
    assert term == {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["default"]}


def test_the_certificate_is_of_the_service_and_of_that_authority(
    release: Release, cluster: Cluster, tmp_path: Path
) -> None:
    webhook = _webhook(release.install(WITHOUT_CRDS))
    files = {name: base64.b64decode(text) for name, text in _secret(release, cluster).items()}
    assert base64.b64decode(webhook["clientConfig"]["caBundle"]) == files["ca.crt"]
    for name, text in files.items():
        (tmp_path / name).write_bytes(text)
    _shake_hands(tmp_path, f"argosy-admission.{release.namespace}.svc")
    with pytest.raises(ssl.SSLCertVerificationError):
        _shake_hands(tmp_path, "argosy-admission.elsewhere.svc")


def _shake_hands(folder: Path, host: str) -> None:
    """Shake hands in memory: the client trusts the authority alone, and knows the server by this name."""
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(folder / CERTIFICATE, folder / KEY)
    client = ssl.create_default_context(cafile=str(folder / "ca.crt"))
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = (client.wrap_bio(to_client, to_server, server_hostname=host), server.wrap_bio(to_server, to_client, True))
    for _ in range(4):
        for end in ends:
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
    assert ends[0].getpeercert()


def test_the_certificate_stays_across_upgrades(release: Release, cluster: Cluster) -> None:
    release.install(WITHOUT_CRDS)
    before = _secret(release, cluster)
    webhook = _webhook(release.upgrade({**WITHOUT_CRDS, "replicas": 1}))
    assert _secret(release, cluster) == before
    assert webhook["clientConfig"]["caBundle"] == before["ca.crt"]
    cluster.kubectl("delete", "secret", "argosy-admission", "-n", release.namespace)
    webhook = _webhook(release.upgrade(WITHOUT_CRDS))
    assert _secret(release, cluster)["tls.key"] != before["tls.key"]
    assert webhook["clientConfig"]["caBundle"] == _secret(release, cluster)["ca.crt"]


def test_a_certificate_of_ones_own_takes_its_slot(release: Release) -> None:
    own = {"annotations": {"cert-manager.io/inject-ca-from": "a/b"}, "certificate": {"secretName": "mine"}}
    objects = release.install({**WITHOUT_CRDS, "admission": own}, check_fields=True)
    assert [body for body in objects if body["kind"] == "Secret"] == []
    assert only(objects, CONFIGURATION)["metadata"]["annotations"] == own["annotations"]
    assert "caBundle" not in _webhook(objects)["clientConfig"]
    volumes = only(objects, "Deployment")["spec"]["template"]["spec"]["volumes"]
    assert {"name": "admission", "secret": {"secretName": "mine", "optional": True}} in volumes


def test_without_admission_nothing_of_it_is_left(release: Release) -> None:
    release.install(WITHOUT_CRDS)
    objects = release.upgrade({**WITHOUT_CRDS, "admission": {"enabled": False}})
    assert not {"Secret", CONFIGURATION} & {body["kind"] for body in objects}
    (container,) = only(objects, "Deployment")["spec"]["template"]["spec"]["containers"]
    assert not [flag for flag in container["args"] if "admission" in flag]
    assert [port["name"] for port in container["ports"]] == ["metrics"]


def test_two_releases_have_their_own(releases: Callable[..., Release]) -> None:
    names = [
        only(release.install(WITHOUT_CRDS), CONFIGURATION)["metadata"]["name"] for release in (releases(), releases())
    ]
    assert len(set(names)) == 2
