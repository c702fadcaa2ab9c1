"""An authority that issues certificates of localhost, also ones that have expired."""

import datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, text)])


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    encoding = serialization.PrivateFormat.PKCS8
    return key.private_bytes(serialization.Encoding.PEM, encoding, serialization.NoEncryption())


class Authority:
    """Signs certificates; `root` is the PEM file of its own."""

    def __init__(self, folder: Path, name: str = "authority") -> None:
        self._folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(name)
        self.root = folder / f"{name}.pem"
        constraint = x509.BasicConstraints(ca=True, path_length=None)
        made = self._builder(self._name, self._key, 10).add_extension(constraint, critical=True)
        usage = x509.KeyUsage(True, False, False, False, False, True, True, False, False)
        made = made.add_extension(usage, critical=True)
        self.root.write_bytes(made.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey, days: float) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
        issuer = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        return (
            x509.CertificateBuilder(self._name, subject, key.public_key(), x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(days=20))
            .not_valid_after(now + datetime.timedelta(days=days))
            .add_extension(identifier, critical=False)
            .add_extension(issuer, critical=False)
        )

    def issue(self, name: str, days: float = 1.0) -> tuple[Path, Path]:
        """Write a certificate, its subject `name`, that is valid for so many days, and its key. Return both files."""
        key = ec.generate_private_key(ec.SECP256R1())
        host = x509.SubjectAlternativeName([x509.DNSName("localhost")])
        made = self._builder(_name(name), key, days).add_extension(host, critical=False)
        certificate, private = self._folder / f"{name}.crt", self._folder / f"{name}.key"
        certificate.write_bytes(made.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
        private.write_bytes(_pem(key))
        return certificate, private
