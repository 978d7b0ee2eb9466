"""The certificate of a device is a function of its public key."""

import base64
import shutil
import ssl
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sync.lan.transport.certificates import (
    _load_own_certificate,
    certificate_of,
    fingerprint,
    key_of_certificate,
)
from sync.system.files import remove_temporary_files


def public_key(number: int) -> str:
    raw = Ed25519PrivateKey.from_private_bytes(bytes([number]) * 32).public_key().public_bytes_raw()
    return "ed25519:" + base64.b64encode(raw).decode()


def test_everybody_makes_the_same_certificate_of_a_key() -> None:
    assert fingerprint(certificate_of(public_key(1))) == (
        "dc655bcae41afc5066f8ccb09220077719a29c553ced2eea9bc79fa43e782d6a"
    )
    assert certificate_of(public_key(1)) != certificate_of(public_key(2))


def test_a_certificate_holds_the_key_and_may_sign_no_other() -> None:
    certificate = x509.load_der_x509_certificate(certificate_of(public_key(1)))
    assert certificate.public_key() == Ed25519PrivateKey.from_private_bytes(bytes([1]) * 32).public_key()
    assert not certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca


def test_a_certificate_is_recognised_among_known_keys_only() -> None:
    known = [public_key(1), public_key(2)]
    assert key_of_certificate(certificate_of(public_key(2)), known) == public_key(2)
    assert key_of_certificate(certificate_of(public_key(3)), known) is None
    assert key_of_certificate(None, known) is None


@pytest.mark.parametrize("other", [public_key(1).removeprefix("ed25519:"), public_key(1)[:-2] + "x="])
def test_a_key_has_one_spelling_by_which_it_is_revoked(other: str) -> None:
    with pytest.raises(ValueError, match="one spelling"):
        certificate_of(other)


class KilledContext(ssl.SSLContext):
    """Leaves the file of the key as a process does that is killed while OpenSSL reads it."""

    left: Path

    def load_cert_chain(self, certfile: str, *_: object, **__: object) -> None:  # type: ignore[override]
        shutil.copy(certfile, self.left)


def test_a_key_file_that_a_killed_process_left_is_cleaned_up(tmp_path: Path) -> None:
    context = KilledContext(ssl.PROTOCOL_TLS_CLIENT)
    context.left = tmp_path / "left"
    context.left.mkdir()
    _load_own_certificate(context, bytes([1]) * 32, tmp_path)
    assert len(list(context.left.iterdir())) == 1
    remove_temporary_files(context.left)
    assert list(context.left.iterdir()) == []
