"""The PEM files of one port."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class TlsFiles:
    """Paths of PEM files. `clients_root` is what clients' certificates are checked against; "" asks for none.

    `flags` begins the names of the flags: http, grpc or metrics.
    """

    certificate: str
    key: str
    clients_root: str = ""
    flags: str = "grpc"

    @property
    def identity_flags(self) -> str:
        """The flags of the certificate and its key with their files, for messages."""
        return f"--{self.flags}-server-cert={self.certificate} and --{self.flags}-server-key={self.key}"

    @property
    def paths(self) -> tuple[str, ...]:
        """All files that are there."""
        return tuple(filter(None, (self.certificate, self.key, self.clients_root)))
