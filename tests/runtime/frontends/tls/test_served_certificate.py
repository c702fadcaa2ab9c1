"""The certificate of a port: what its files say, and when it is replaced."""

import logging
import ssl
import time
from dataclasses import replace
from pathlib import Path

import pytest
from tests.runtime.authority import Authority
from tests.runtime.frontends.tls.conftest import replace_files

from argosy_runtime.errors import ErrorKind, ServingError
from argosy_runtime.frontends.tls.files import TlsFiles
from argosy_runtime.frontends.tls.served import ServedCertificate
from argosy_runtime.telemetry.exposition import exposition
from argosy_runtime.telemetry.machine.certificates import certificate_families

DAY_S = 86400


def subject_shown(served: ServedCertificate, authority: Authority) -> str:
    """Return the subject of the certificate that a client sees, by a handshake in memory."""
    client = ssl.create_default_context(cafile=str(authority.root))
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ours = client.wrap_bio(to_client, to_server, server_hostname="localhost")
    theirs = served.context.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(4):
        for side in (ours, theirs):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
    shown = ours.getpeercert()
    assert shown is not None
    return str(dict(pair[0] for pair in shown["subject"])["commonName"])


def test_a_new_certificate_is_shown_from_the_next_look_on(files: TlsFiles, authority: Authority) -> None:
    served = ServedCertificate("http", files)
    replace_files(files, authority.issue("second", days=3))
    assert subject_shown(served, authority) == "first"
    served.refresh(time.time())
    assert subject_shown(served, authority) == "second"
    state = served.state
    assert (state.port, state.reloads, state.failures) == ("http", 1, 0)
    assert state.expires_at == pytest.approx(time.time() + 3 * DAY_S, abs=60)
    served.refresh(time.time())
    assert served.state == state


@pytest.mark.parametrize("broken", ["cut short", "another key", "gone", "expired", "encrypted"])
def test_files_that_do_not_do_leave_the_former_one(
    broken: str, files: TlsFiles, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    served = ServedCertificate("http", files)
    if broken == "cut short":
        Path(files.certificate).write_bytes(Path(files.certificate).read_bytes()[:100])
    elif broken == "another key":
        Path(files.key).write_bytes(authority.issue("other")[1].read_bytes())
    elif broken == "gone":
        Path(files.key).unlink()
    elif broken == "expired":
        replace_files(files, authority.issue("old", days=-1))
    else:
        Path(files.key).write_text("-----BEGIN ENCRYPTED PRIVATE KEY-----\nMA==\n-----END ENCRYPTED PRIVATE KEY-----\n")
    for _ in range(3):
        served.refresh(time.time())
    assert subject_shown(served, authority) == "first"
    assert (served.state.reloads, served.state.failures) == (0, 1)
    (record,) = [record for record in caplog.records if record.levelno >= logging.ERROR]
    assert "the certificate of the http port stays as it was: --http-server-cert" in record.getMessage()
    replace_files(files, authority.issue("third"))
    served.refresh(time.time())
    assert subject_shown(served, authority) == "third"


def test_a_certificate_that_expires_while_it_serves_is_reported_once(
    files: TlsFiles, authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    served = ServedCertificate("grpc", files)
    later = time.time() + 2 * DAY_S
    for _ in range(3):
        served.refresh(later)
    assert [record.getMessage() for record in caplog.records] == [
        "the certificate of the grpc port has expired, and clients will refuse it"
    ]
    replace_files(files, authority.issue("next", days=9))
    served.refresh(later)
    assert subject_shown(served, authority) == "next"


@pytest.mark.parametrize(
    ("change", "flag"),
    [
        ({"certificate": "nowhere"}, "--http-server-cert=nowhere and --http-server-key=/"),
        ({"key": "nowhere"}, "--http-server-key=nowhere cannot be used"),
        ({"clients_root": "nowhere"}, "--http-root-cert=nowhere cannot be used"),
    ],
)
def test_files_that_do_not_do_at_the_start_are_named_by_their_flags(
    change: dict[str, str], flag: str, files: TlsFiles
) -> None:
    with pytest.raises(ServingError, match=flag) as caught:
        ServedCertificate("http", replace(files, **change))
    assert caught.value.kind is ErrorKind.INVALID_ARG


def test_what_is_reported_of_certificates(files: TlsFiles) -> None:
    served = ServedCertificate("metrics", files)
    text = exposition(certificate_families([served.state])).decode()
    assert 'argosy_tls_reloads_total{port="metrics"} 0' in text
    assert 'argosy_tls_reload_failures_total{port="metrics"} 0' in text
    assert f'argosy_tls_certificate_expiry_timestamp_seconds{{port="metrics"}} {int(served.state.expires_at)}' in text
