"""The certificates of a cluster: an authority of its own, and a key for each machine, which are good for nothing else."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from runner.model.errors import RunnerError, disk_error

DAYS = 400
_USES = (
    *("digital_signature", "content_commitment", "key_encipherment", "data_encipherment", "key_agreement"),
    *("key_cert_sign", "crl_sign", "encipher_only", "decipher_only"),
)
AUTHORITY = "authority"  # the folder of the authority's own key, which stays where the certificates are made


def make(folder: Path, hosts: Sequence[str]) -> list[Path]:
    """A folder with ``ca.pem``, ``cert.pem`` and ``key.pem`` for each host (name or address), below ``folder``.

    The authority is made where there is none; hosts that have a folder keep it. Returns the new folders. Raises E306, and E101
    for a host's name that is none.
    """
    for name in hosts:
        if not name or "/" in name or name.startswith(".") or name == AUTHORITY:
            raise RunnerError(
                "E101", f"{name!r} is no name of a host", fix="give names or addresses of machines"
            )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        key, authority = _authority(folder / AUTHORITY)
        made = [folder / name for name in hosts if not (folder / name).exists()]
        for target in made:
            _write_host(target, key, authority)
        return made
    except OSError as error:
        raise disk_error(f"{folder} cannot be written", error) from error


def _authority(folder: Path) -> tuple[Ed25519PrivateKey, x509.Certificate]:
    if (folder / "key.pem").is_file():
        key = load_pem_private_key((folder / "key.pem").read_bytes(), None)
        assert isinstance(key, Ed25519PrivateKey)
        return key, x509.load_pem_x509_certificate((folder / "ca.pem").read_bytes())
    key = Ed25519PrivateKey.generate()
    name = f"proctor cluster {os.urandom(4).hex()}"
    certificate = _certificate(name, key.public_key(), key, None)
    _write(folder, {"key.pem": _pem(key), "ca.pem": certificate.public_bytes(Encoding.PEM)})
    return key, certificate


def _write_host(folder: Path, signing: Ed25519PrivateKey, authority: x509.Certificate) -> None:
    key = Ed25519PrivateKey.generate()
    certificate = _certificate(folder.name, key.public_key(), signing, authority)
    public = {"cert.pem": certificate, "ca.pem": authority}
    files = {name: one.public_bytes(Encoding.PEM) for name, one in public.items()}
    _write(folder, {"key.pem": _pem(key), **files})


def _certificate(
    name: str, public: Ed25519PublicKey, signing: Ed25519PrivateKey, authority: x509.Certificate | None
) -> x509.Certificate:
    """A certificate of the host ``name`` by an ``authority``, or of an authority itself (None)."""
    now, subject = datetime.now(UTC), x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name[:64])])
    used = ("key_cert_sign", "crl_sign") if authority is None else ("digital_signature",)
    usage = x509.KeyUsage(**{one: one in used for one in _USES})
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject if authority is None else authority.subject)
        .public_key(public)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=DAYS))
        .add_extension(
            x509.BasicConstraints(authority is None, 0 if authority is None else None), critical=True
        )
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public), critical=False)
    )
    if authority is not None:
        signer = x509.AuthorityKeyIdentifier.from_issuer_public_key(signing.public_key())
        names = x509.SubjectAlternativeName([_place(name)])
        builder = builder.add_extension(signer, critical=False).add_extension(names, critical=False)
    return builder.sign(signing, None)


def _place(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _pem(key: Ed25519PrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _write(folder: Path, files: dict[str, bytes]) -> None:
    folder.mkdir(mode=0o700)
    for name, data in files.items():
        with os.fdopen(os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as stream:
            stream.write(data)
