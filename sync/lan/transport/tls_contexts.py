"""The TLS contexts of a device, rebuilt when the trusted keys change."""

import asyncio
import ssl
from pathlib import Path

from sync.cloud.auth.device_key import DeviceKey
from sync.lan.transport.certificates import tls_context


class TlsContexts:
    """Contexts with the device's certificate, for the server's and the client's side."""

    def __init__(self, key: DeviceKey, folder: Path) -> None:
        self._key = key
        self._folder = folder
        self._contexts: dict[tuple[bool, frozenset[str]], ssl.SSLContext] = {}

    async def client(self, known: frozenset[str]) -> ssl.SSLContext:
        return await self._context(known, server=False)

    async def server(self, known: frozenset[str], *, admits_pairing: bool) -> ssl.SSLContext:
        """`admits_pairing`: a client may come without a certificate, and is refused unless it pairs."""
        context = await self._context(known, server=True)
        context.verify_mode = ssl.CERT_OPTIONAL if admits_pairing else ssl.CERT_REQUIRED
        return context

    async def _context(self, known: frozenset[str], *, server: bool) -> ssl.SSLContext:
        if (server, known) not in self._contexts:
            self._contexts = {of: kept for of, kept in self._contexts.items() if of[1] == known}
            seed = await self._key.private_half()
            made = await asyncio.to_thread(tls_context, seed, known, self._folder, server=server)
            self._contexts[server, known] = made
        return self._contexts[server, known]


def pairing_context() -> ssl.SSLContext:
    """The context of a device that enters a code: it presents nothing, and the code decides who answers."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_3
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context
