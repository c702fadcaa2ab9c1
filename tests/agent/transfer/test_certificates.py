"""Stores behind a private authority's certificate: final and plain without it, and one way to trust it."""

import datetime
import ipaddress
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import huggingface_hub
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from tests.agent.sites import Site, serving

from argosy_agent.cache.storage import Storage
from argosy_agent.transfer.errors import StorageError, TransientError
from argosy_agent.transfer.flow import Retry

HOST = "127.0.0.1"


def signed(name: str, issuer: str, own: ec.EllipticCurvePrivateKey, by: ec.EllipticCurvePrivateKey) -> x509.Certificate:
    """Return a certificate for a day."""
    named = [x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, item)]) for item in (name, issuer)]
    now = datetime.datetime.now(datetime.UTC)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(HOST))])
    made = x509.CertificateBuilder().subject_name(named[0]).issuer_name(named[1]).public_key(own.public_key())
    made = made.serial_number(x509.random_serial_number()).not_valid_before(now - datetime.timedelta(hours=1))
    made = made.not_valid_after(now + datetime.timedelta(days=1)).add_extension(address, False)
    return made.add_extension(x509.BasicConstraints(name == issuer, None), True).sign(by, hashes.SHA256())


@pytest.fixture
def authority(tmp_path: Path) -> Path:
    """Write the private authority's certificate, next to `server.pem`, which it signed."""
    authority, server = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    pem = serialization.Encoding.PEM
    (tmp_path / "ca.crt").write_bytes(signed("ours", "ours", authority, authority).public_bytes(pem))
    key = server.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (tmp_path / "server.pem").write_bytes(signed(HOST, "ours", server, authority).public_bytes(pem) + key)
    return tmp_path / "ca.crt"


@pytest.fixture
def secure(authority: Path) -> Iterator[Site]:
    """Yield a web server behind that certificate."""
    with serving(Site(files={"/m": b"data"}), authority.with_name("server.pem")) as site:
        yield site


@pytest.fixture
def uris(secure: Site, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Return a URI there for each kind of storage."""
    for name, value in {
        "AWS_ENDPOINT_URL": secure.url,
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_REGION": "us-east-1",
        "GOOGLE_BASE_URL": secure.url,
        "GOOGLE_SKIP_SIGNATURE": "true",
        "AZURE_STORAGE_ENDPOINT": secure.url,
        "AZURE_STORAGE_ACCOUNT_NAME": "account",
        "AZURE_SKIP_SIGNATURE": "true",
        "HF_ENDPOINT": secure.url,
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    huggingface_hub.close_session()  # it keeps its client
    return {
        "s3": "s3://b/m",
        "gs": "gs://b/m",
        "az": "az://b/m",
        "https": f"{secure.url}/m",
        "hf": "hf://o/m",
    }


KINDS = ("s3", "gs", "az", "https", "hf")


@pytest.mark.parametrize("kind", KINDS)
def test_an_untrusted_certificate_is_final_and_called_by_its_name(
    tmp_path: Path, uris: dict[str, str], kind: str
) -> None:
    """Were it tried again, the wait of an hour would never end."""
    storage = Storage(tmp_path / "cache", retry=Retry(tries=9, first_s=3600, most_s=3600))
    with pytest.raises(StorageError, match=r"the server's certificate is not trusted .*SSL_CERT_FILE") as raised:
        storage.fetch(uris[kind])
    assert not isinstance(raised.value, TransientError)


@pytest.mark.parametrize("kind", KINDS)
def test_an_authority_of_ssl_cert_file_is_trusted(
    tmp_path: Path, secure: Site, uris: dict[str, str], authority: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    answered: list[str] = []
    secure.before = answered.append
    with suppress(StorageError):  # it is a server, but no such storage
        Storage(tmp_path / "cache", retry=Retry(tries=1)).fetch(uris[kind])
    assert answered
