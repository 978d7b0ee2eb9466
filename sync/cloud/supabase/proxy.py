"""Through which proxy a server is asked, of those that the environment or the system names.

Decisions
    httpx would read the same places, and cannot be built over what other programs pass over: `socks://`, as GNOME
    writes it, and `[::1]` among the names that no proxy is asked for. So it is told, and reads nothing itself.
    A client of ours asks one server alone, so one answer is enough.
"""

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

# not in its documentation; what urllib, requests and websockets ask, and it looks up no name
from urllib.request import proxy_bypass_environment  # type: ignore[attr-defined]

SCHEME_ALIASES: Final = {"socks": "socks5"}  # GLib's word for a SOCKS proxy of whatever version


def proxy_for(url: str, proxies: Mapping[str, str]) -> str | None:
    """The proxy's address, or None for no proxy. `told`: what `urllib.request.getproxies` answers.

    It may be none that can be used: that is for whoever connects to find out.
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
