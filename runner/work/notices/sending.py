"""Sending one notice: by a web hook, or by mail. Nothing here knows what may be said, only how.

A hook is called at the very address that was looked at: its name is resolved once, every address that it has must be a public
one (unless ``private: true``), and no redirect is followed.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import os
import smtplib
import socket
import ssl
from email.message import EmailMessage
from urllib.parse import urlsplit

import schemas
from runner.work.notices.due import Notice
from runner.work.notices.settings import Hook, Mail

SECONDS = 15.0
_TRANSLATED = ipaddress.ip_network("64:ff9b::/96")  # IPv4 addresses as IPv6


class NotSent(Exception):
    """It surely did not come; the text says why. It may be tried again."""


class Unknown(Exception):
    """It was sent, and nobody said that it came. It is not tried again."""


def identity(receiver: str, notice: Notice) -> str:
    """The id of a notice for one receiver: the same if it were ever sent again."""
    return hashlib.sha256(f"{receiver}\0{notice.key}".encode()).hexdigest()[:32]


def call(hook: Hook, notice: Notice, id: str, url: str) -> None:
    """Call a hook with a notice. Raises NotSent, Unknown."""
    import urllib3

    at = urlsplit(hook.url)
    host, port = str(at.hostname), at.port or (443 if at.scheme == "https" else 80)
    address = _public(host, port, private=hook.private)
    body = schemas.canonical(
        {
            "schema_version": 1,
            "id": id,
            "about": notice.about,
            "team": notice.team,
            "text": notice.text,
            "url": url,
        }
    )
    headers = {
        "Host": at.netloc.rpartition("@")[2],
        "Content-Type": "application/json",
        "User-Agent": "proctor",
        "X-Proctor-Notice": id,
    }
    if hook.secret_env is not None:
        secret = os.environ.get(hook.secret_env, "")
        if not secret:
            raise NotSent(f"{hook.secret_env} is not set")
        headers["X-Proctor-Signature"] = (
            "sha256=" + hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
        )
    timeout = urllib3.Timeout(connect=SECONDS, read=SECONDS)
    pool: urllib3.HTTPConnectionPool = (
        urllib3.HTTPSConnectionPool(
            address, port, server_hostname=host, assert_hostname=host, timeout=timeout
        )
        if at.scheme == "https"
        else urllib3.HTTPConnectionPool(address, port, timeout=timeout)
    )
    target = (at.path or "/") + (f"?{at.query}" if at.query else "")
    with pool:
        try:
            answer = pool.urlopen(
                "POST", target, body, headers, retries=False, redirect=False, preload_content=False
            )
        except (
            urllib3.exceptions.NewConnectionError,
            urllib3.exceptions.ConnectTimeoutError,
            urllib3.exceptions.SSLError,
        ) as error:
            raise NotSent(f"no connection: {error}"[:300]) from None
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise Unknown(f"the connection broke: {error}"[:300]) from None
        answer.close()
    if not 200 <= answer.status < 300:
        raise NotSent(f"it answers {answer.status}")


def mail(settings: Mail, to: str, notice: Notice, id: str, url: str) -> None:
    """Send a notice by mail. Raises NotSent, Unknown."""
    message = EmailMessage()
    try:
        message["From"], message["To"] = settings.sender, to
        message["Subject"] = notice.text
        message["Message-ID"] = f"<{id}@{settings.sender.rpartition('@')[2]}>"
        message["Auto-Submitted"] = "auto-generated"
    except ValueError as error:
        raise NotSent(f"it cannot be addressed: {error}") from None
    message.set_content(f"{notice.text}.\n\n{url}\n\nTo get no more of these, tell the organiser.\n")
    step = "before"
    try:
        with _connected(settings) as server:
            if settings.user is not None:
                server.login(settings.user, os.environ.get(settings.password_env or "", ""))
            step = "sending"
            server.send_message(message)
            step = "sent"
    except (smtplib.SMTPException, OSError) as error:
        if step == "sent":  # how the connection ended does not matter
            return
        # What the server answered was no: it has not taken it.
        refused = isinstance(error, smtplib.SMTPResponseException | smtplib.SMTPRecipientsRefused)
        if step == "sending" and not refused:
            raise Unknown(f"the connection broke: {error}"[:300]) from None
        raise NotSent(f"{settings.host}: {error}"[:300]) from None


def _connected(settings: Mail) -> smtplib.SMTP:
    context = ssl.create_default_context(cafile=settings.ca)
    if settings.tls == "implicit":
        return smtplib.SMTP_SSL(settings.host, settings.port, timeout=SECONDS, context=context)
    server = smtplib.SMTP(settings.host, settings.port, timeout=SECONDS)
    try:
        if settings.tls == "starttls":
            server.starttls(context=context)
    except BaseException:
        server.close()
        raise
    return server


def _public(host: str, port: int, *, private: bool) -> str:
    """One of the addresses of a host, which all are public ones. Raises NotSent."""
    try:
        found = [str(one[4][0]) for one in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    except (OSError, UnicodeError) as error:
        raise NotSent(f"{host} is not known: {error}"[:300]) from None
    for text in found if not private else ():
        address = ipaddress.ip_address(text.partition("%")[0])
        inner = getattr(address, "ipv4_mapped", None) or getattr(address, "sixtofour", None) or address
        if not inner.is_global or inner.is_multicast or (address.version == 6 and address in _TRANSLATED):
            raise NotSent(f"{host} is {text}, no public address: write private: true if that is meant")
    return found[0]
