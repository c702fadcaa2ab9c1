"""The cluster's certificate authority and what it signs, made with the openssl program (EC keys, valid ten years)."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from e2e.cluster.errors import ClusterError


class Authority:
    """A certificate authority in `folder`: ca.crt, ca.key, and NAME.crt and NAME.key for each it signed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.certificate = folder / "ca.crt"
        self._key = folder / "ca.key"

    def create(self) -> None:
        """Make the authority; one that is there stays."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if self.certificate.exists():
            return
        new_key(self._key)
        extensions = ("basicConstraints=critical,CA:TRUE", "keyUsage=critical,keyCertSign,cRLSign")
        words = [word for extension in extensions for word in ("-addext", extension)]
        _openssl("req", "-x509", "-new", "-key", self._key, "-days", "3650", "-subj", "/CN=argosy-e2e", *words,
                 "-out", self.certificate)  # fmt: skip

    def server(self, name: str, hosts: Sequence[str], addresses: Sequence[str]) -> tuple[Path, Path]:
        """Create certificate and key of a server that answers to these names and addresses."""
        alternatives = [f"DNS:{host}" for host in hosts] + [f"IP:{address}" for address in addresses]
        usage = f"extendedKeyUsage=serverAuth\nsubjectAltName={','.join(alternatives)}\n"
        return self._sign(name, f"/CN={name}", usage)

    def client(self, name: str, user: str, groups: Sequence[str] = ()) -> tuple[Path, Path]:
        """Create certificate and key of a user (CN) in these groups (O), which is how Kubernetes reads them."""
        subject = "".join(f"/O={_escaped(group)}" for group in groups) + f"/CN={_escaped(user)}"
        return self._sign(name, subject, "extendedKeyUsage=clientAuth\n")

    def _sign(self, name: str, subject: str, extensions: str) -> tuple[Path, Path]:
        certificate, key = self.folder / f"{name}.crt", self.folder / f"{name}.key"
        request, config = self.folder / f"{name}.csr", self.folder / f"{name}.cnf"
        new_key(key)
        config.write_text(f"basicConstraints=CA:FALSE\nkeyUsage=critical,digitalSignature\n{extensions}")
        _openssl("req", "-new", "-key", key, "-subj", subject, "-out", request)
        _openssl("x509", "-req", "-in", request, "-CA", self.certificate, "-CAkey", self._key, "-CAcreateserial",
                 "-days", "3650", "-extfile", config, "-out", certificate)  # fmt: skip
        request.unlink()
        config.unlink()
        return certificate, key


def new_key(path: Path) -> None:
    """Write a private key (P-256) that only its owner reads."""
    path.touch(mode=0o600)
    _openssl("ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", path)


def _openssl(*words: str | Path) -> None:
    done = subprocess.run(["openssl", *map(str, words)], capture_output=True, text=True)
    if done.returncode != 0:
        raise ClusterError(f"openssl {words[0]} failed: {done.stderr.strip()}")


def _escaped(value: str) -> str:
    """Return a value within openssl's `/O=…/CN=…` notation."""
    return value.replace("\\", "\\\\").replace("/", "\\/").replace("+", "\\+")
