"""The proxy of an address, by the settings of the environment or the system.

httpx reads the same settings but fails on some that other programs tolerate: `socks://`, as GNOME writes it, and
`[::1]` in the list of exceptions. So its own lookup is turned off.
"""

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

# undocumented, but urllib, requests and websockets use it; it resolves no names
from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]

SCHEME_ALIASES: Final = {"socks": "socks5"}  # GLib's name for a SOCKS proxy of any version


def proxy_for(url: str, proxies: Mapping[str, str]) -> str | None:
    """The proxy's address, or None. `proxies` is the result of `urllib.request.getproxies`.

    The address is not checked.
    """
    parts = urlsplit(url)
    server = parts.netloc.rpartition("@")[2]
    if any(proxy_bypass_environment(name, proxies) for name in (server, parts.hostname or "")):
        return None
    named = proxies.get(parts.scheme) or proxies.get("all")
    if not named:
        return None
    scheme, separator, address = named.partition("://")
    if not separator:
        return f"http://{named}"
    return f"{SCHEME_ALIASES.get(scheme.lower(), scheme)}://{address}"
