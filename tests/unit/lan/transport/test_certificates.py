"""The certificate of a device is a function of its public key."""

import base64

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sync.lan.transport.certificates import certificate_of, fingerprint, key_of_certificate


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
