"""The check of the local network for `doctor`."""

from typing import Final

from sync.lan.access import LanAccess
from sync.lan.model import LanRefusalJson, LanStatusJson
from sync.startup.checks import HealthCheck

NAME: Final = "local network"
OWN_FAULTS: Final = frozenset(  # refusals that a person has to end; a stranger may knock at any port
    {
        "copy_of_this_device",
        "copied_database",
        "other_version",
        "refused_by_the_other_device",
        "other_account",
        "pairing_ended",
    }
)


async def check_lan(lan: LanAccess) -> HealthCheck:
    """Whether this device listens, and what keeps its peers away."""
    await lan.probe_multicast()
    return judge_status(await lan.status())


def judge_status(status: LanStatusJson) -> HealthCheck:
    refused = [refusal for refusal in status.refusals if _is_own_fault(refusal, status)]
    if status.state == "off":
        found = "XIAOBAI_LAN__ENABLED is `off`" if status.enabled == "off" else "no sidecar answers"
        paired = f"; {len(status.paired)} paired by code" if status.paired else ""
        return HealthCheck(NAME, ok=None, found=f"{found}{paired}")
    if status.state == "failed":
        hint = "Set XIAOBAI_LAN__PORT and XIAOBAI_LAN__ADDRESS to what this machine has free."
        return HealthCheck(NAME, ok=False, found=status.problem or "the port cannot be opened", hint=hint)
    if status.state == "alone":
        hint = "`xiaobai-memory lan pair` pairs a device without a cloud."
        return HealthCheck(NAME, ok=None, found="no other device is known here", hint=hint)
    if refused:
        return HealthCheck(NAME, ok=False, found=f"refused: {refused[0].cause}", hint=refused[0].hint)
    if status.peers:
        return HealthCheck(NAME, ok=True, found=f"{len(status.peers)} of {status.trusted} devices connected")
    silent = [interface.problem for interface in status.interfaces if interface.problem]
    if silent and len(silent) == len(status.interfaces):
        hint = "`xiaobai-memory lan connect ADDRESS PORT` reaches a device whose address you know."
        return HealthCheck(NAME, ok=False, found=silent[0], hint=hint)
    hint = (
        "If another device is on this network: the network may keep devices apart, or a firewall (Windows: a network"
        " with the profile Public) may block them. `xiaobai-memory lan connect ADDRESS PORT` tells which."
    )
    return HealthCheck(NAME, ok=None, found=f"port {status.port} is open, no other device was found", hint=hint)


def _is_own_fault(refusal: LanRefusalJson, status: LanStatusJson) -> bool:
    """Whether a person has to end it: not if the device is connected by now, nor if its pairing was ended here."""
    is_over = refusal.device_id in {peer.device_id for peer in status.peers}
    was_forgotten = refusal.cause == "pairing_ended" and refusal.device_id not in {
        paired.device_id for paired in status.paired
    }
    return refusal.cause in OWN_FAULTS and not is_over and not was_forgotten
