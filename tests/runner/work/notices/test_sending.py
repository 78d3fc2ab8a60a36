"""Hooks and mail over real connections on this machine."""

from __future__ import annotations

import hashlib
import hmac
import http.server
import json
import re
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, ClassVar

import pytest
import urllib3
from aiosmtpd.controller import Controller

from runner.work.notices.due import Notice
from runner.work.notices.sending import NotSent, Unknown, call, identity, mail
from runner.work.notices.settings import Hook, Mail
from tests.worlds.ports import free_port

NOTICE = Notice("done:r:scored", "done", "alpha", "mini: alpha.one.x.test is done: scored", "/runs/r")
URL = "https://task.example.org/runs/r"


class Receiver(http.server.BaseHTTPRequestHandler):
    got: ClassVar[list[tuple[str, dict[str, str], bytes]]] = []
    status, location = 200, ""

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        Receiver.got.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
        if Receiver.status == 0:
            self.close_connection = True
            return
        self.send_response(Receiver.status)
        if Receiver.location:
            self.send_header("location", Receiver.location)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: Any) -> None:
        pass


@contextmanager
def receiving() -> Iterator[str]:
    """The address of a hook on this machine; what it gets is in ``Receiver.got``."""
    Receiver.got, Receiver.status, Receiver.location = [], 200, ""
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Receiver)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://localhost:{server.server_port}/hook?x=1"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def receiver() -> Iterator[str]:
    with receiving() as url:
        yield url


def test_a_hook_gets_the_notice_signed(receiver: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOOK_SECRET", "s3cret")
    hook = Hook("a", receiver, private=True, secret_env="HOOK_SECRET")
    call(hook, NOTICE, identity("hook:a", NOTICE), URL)
    [(path, headers, body)] = Receiver.got
    assert path == "/hook?x=1" and headers["host"] == receiver.split("/")[2]
    assert headers["x-proctor-signature"] == "sha256=" + hmac.new(b"s3cret", body, hashlib.sha256).hexdigest()
    said = json.loads(body)
    assert said["url"] == URL and said["text"] == NOTICE.text and said["id"] == headers["x-proctor-notice"]
    monkeypatch.delenv("HOOK_SECRET")
    with pytest.raises(NotSent) as refused:
        call(hook, NOTICE, "i", URL)
    assert "HOOK_SECRET" in str(refused.value) and len(Receiver.got) == 1


INSIDE = [
    "127.0.0.1",
    "localhost",
    "2130706433",
    "0x7f000001",
    "0.0.0.0",
    "10.1.2.3",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "224.0.0.1",
    "[::1]",
    "[::]",
    "[::ffff:127.0.0.1]",
    "[::ffff:10.0.0.1]",
    "[fe80::1]",
    "[fd00::1]",
    "[64:ff9b::7f00:1]",
    "[2002:7f00:1::]",
]


@pytest.mark.parametrize("host", INSIDE)
def test_no_address_inside_is_called(receiver: str, host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(urllib3.HTTPConnectionPool, "urlopen", lambda *_, **__: pytest.fail("called"))
    port = receiver.split(":")[2].split("/")[0]
    with pytest.raises(NotSent):
        call(Hook("a", f"http://{host}:{port}/"), NOTICE, "i", URL)
    assert Receiver.got == []


def test_a_hook_that_redirects_refuses_or_breaks_off(receiver: str) -> None:
    hook = Hook("a", receiver, private=True)
    Receiver.location = receiver
    for times, status in enumerate((307, 500), 1):
        Receiver.status = status
        with pytest.raises(NotSent) as refused:
            call(hook, NOTICE, "i", URL)
        assert str(status) in str(refused.value) and len(Receiver.got) == times, "not followed"
    Receiver.status = 0
    with pytest.raises(Unknown):
        call(hook, NOTICE, "i", URL)
    with pytest.raises(NotSent):
        call(replace(hook, url="http://localhost:9/"), NOTICE, "i", URL)


class Box:
    """What a mail server on this machine took."""

    def __init__(self) -> None:
        self.got: list[tuple[str, list[str], str]] = []
        self.says = "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        if self.says.startswith("250"):
            self.got.append((envelope.mail_from, envelope.rcpt_tos, envelope.content.decode()))
        return self.says


def mail_server(box: Box, **options: Any) -> tuple[Controller, int]:
    """A mail server on a free port; it is to be stopped."""
    port = free_port()
    server = Controller(box, hostname="127.0.0.1", port=port, **options)
    server.start()
    return server, port


def certificate(folder: Path) -> Path:
    """A key and a certificate for localhost, in one file."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    secret = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    path = folder / "localhost.pem"
    path.write_bytes(secret + made.public_bytes(serialization.Encoding.PEM))
    return path


@pytest.fixture
def own(tmp_path: Path) -> Path:
    return certificate(tmp_path)


def has_reason(*words: str) -> pytest.RaisesExc[NotSent]:
    return pytest.raises(NotSent, check=lambda error: all(word in str(error) for word in words))


@pytest.mark.parametrize("tls", ["none", "starttls", "implicit"])
def test_mail_comes_once_and_encrypted_as_it_is_asked(
    own: Path, tls: str, golden: Callable[[str, str], None]
) -> None:
    box, context = Box(), ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(own)
    options: dict[str, Any] = {
        "none": {},
        "starttls": {"tls_context": context, "require_starttls": True},
        "implicit": {"ssl_context": context},
    }[tls]
    server, port = mail_server(box, **options)
    try:
        settings = Mail("localhost", "task@example.org", port=port, tls=tls, ca=str(own))
        mail(settings, "team@example.org", NOTICE, "i", URL)
        [(sender, to, text)] = box.got
        assert (sender, to) == ("task@example.org", ["team@example.org"])
        text = re.sub("(?m)^(Date|X-Peer): .*", r"\1: -", text.replace("\r\n", "\n"))
        golden("mail-notice.txt", text)
        if tls != "none":
            with has_reason("CERTIFICATE_VERIFY_FAILED"):
                mail(replace(settings, ca=None), "team@example.org", NOTICE, "i", URL)
        with has_reason("addressed"):
            mail(settings, "team@example.org\r\nBcc: x@example.org", NOTICE, "i", URL)
        assert len(box.got) == 1
        box.says = "550 no"
        with has_reason("550"):
            mail(settings, "team@example.org", NOTICE, "i", URL)
        assert len(box.got) == 1
    finally:
        server.stop()
    with pytest.raises(NotSent):
        mail(settings, "team@example.org", NOTICE, "i", URL)
