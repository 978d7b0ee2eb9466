"""All hosts. The host is found from its JSON: Cursor first, because it also runs the hooks of Claude's settings."""

from collections.abc import Mapping
from typing import Any, Final

from bridge.hooks.claude import CLAUDE
from bridge.hooks.cursor import CURSOR
from bridge.hooks.event import AgentHost

HOSTS: Final[Mapping[str, AgentHost]] = {host.name: host for host in (CURSOR, CLAUDE)}


def sender_of(payload: Mapping[str, Any]) -> AgentHost | None:
    """The host that wrote this JSON."""
    return next((host for host in HOSTS.values() if host.sends(payload)), None)
