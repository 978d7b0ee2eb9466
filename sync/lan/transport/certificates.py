"""TLS between devices: the certificate of a device is a function of its public key, so a list of keys pins them.

Only the holder of the private key can complete a handshake with it. See docs/decisions/030-lan-sync.md.
"""

import base64
import hashlib
import os
import ssl
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.x509.oid import NameOID

from sync.log.devices.signing import ALGORITHM_PREFIX
from sync.system.files import remove_private, write_private

# The certificate's own signature proves nothing and no side checks it; a fixed key makes it the same everywhere.
_SIGNER: Final = Ed25519PrivateKey.from_private_bytes(hashlib.sha256(b"xiaobai-memory lan certificate 1").digest())
_NOT_BEFORE: Final = datetime(2020, 1, 1, tzinfo=UTC)
_NOT_AFTER: Final = datetime(9999, 12, 31, tzinfo=UTC)  # a wrong clock must not lock a device out
NAME_LENGTH: Final = 32
PASSWORD_BYTES: Final = 32


@lru_cache(maxsize=1024)
def certificate_of(public_key: str) -> bytes:
    """The certificate, in DER, of the device with this key (`ed25519:` and base64). Raises ValueError."""
    raw = base64.b64decode(public_key.removeprefix(ALGORITHM_PREFIX), validate=True)
    if public_key != ALGORITHM_PREFIX + base64.b64encode(raw).decode():
        raise ValueError("a key has one spelling, by which it is revoked")
    digest = hashlib.sha256(raw)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, digest.hexdigest()[:NAME_LENGTH])])
    builder = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(Ed25519PublicKey.from_public_bytes(raw))
        .serial_number(int.from_bytes(digest.digest()[:16], "big") | 1)
        .not_valid_before(_NOT_BEFORE)
        .not_valid_after(_NOT_AFTER)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
    )
    return builder.sign(_SIGNER, None).public_bytes(serialization.Encoding.DER)


def fingerprint(certificate: bytes) -> str:
    """SHA-256 of a certificate, in hexadecimal."""
    return hashlib.sha256(certificate).hexdigest()


def key_of_certificate(certificate: bytes | None, known_keys: Iterable[str]) -> str | None:
    """The known key whose certificate this is, compared by SHA-256; None if there is none."""
    if certificate is None:
        return None
    presented = fingerprint(certificate)
    return next((key for key in known_keys if fingerprint(certificate_of(key)) == presented), None)


def tls_context(seed: bytes, known_keys: Iterable[str], folder: Path, *, server: bool) -> ssl.SSLContext:
    """A context for TLS 1.3 with certificates on both sides. Only the certificates of `known_keys` are accepted.

    OpenSSL reads the private key from a file: one in `folder`, encrypted under a random password, removed at once.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER if server else ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname = False  # devices have no names; the certificate itself is pinned
    context.verify_mode = ssl.CERT_REQUIRED
    if server:
        context.num_tickets = 0  # a resumed session would skip the certificates
    pinned = b"".join(certificate_of(key) for key in sorted(known_keys))
    if pinned:
        context.load_verify_locations(cadata=pinned)
    _load_own_certificate(context, seed, folder)
    return context


def _load_own_certificate(context: ssl.SSLContext, seed: bytes, folder: Path) -> None:
    private = Ed25519PrivateKey.from_private_bytes(seed)
    public_key = ALGORITHM_PREFIX + base64.b64encode(private.public_key().public_bytes_raw()).decode()
    password = os.urandom(PASSWORD_BYTES)
    encrypted = private.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.BestAvailableEncryption(password.hex().encode()),
    )
    path = folder / f".lan.{os.urandom(4).hex()}.tmp"  # what a kill leaves is cleaned up as a temporary file
    write_private(path, encrypted + ssl.DER_cert_to_PEM_cert(certificate_of(public_key)).encode())
    try:
        context.load_cert_chain(path, password=password.hex())
    finally:
        remove_private(path)
