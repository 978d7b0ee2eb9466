"""`lan status | peers | connect | pair | forget`: devices that sync directly, on the local network."""

import signal
import sys
import time
from typing import Annotated, Any, Final

import typer

from bridge.cli.arguments import text_argument
from bridge.cli.output import echo, in_own_language, localized, say
from bridge.cli.runner import CommandApp, cli_context, given_params, run_command
from bridge.cli.sidecar_runner import Request
from sync.errors import PeerRefused

WAIT_SECONDS: Final = 125.0  # a little longer than a code is good
POLL_SECONDS: Final = 1.0  # how often the command that shows a code asks whether it was entered

app = CommandApp(help="The account's devices on the local network: they sync directly, also without the cloud.")


@app.command("status")
def status() -> None:
    """Where this device listens, who is connected, what was refused and why."""
    run_command(Request("lan/status", {}, _show_status, role="guest"))


@app.command("peers")
def peers() -> None:
    """The devices that are connected now."""
    run_command(Request("lan/peers", {}, lambda result: _show_peers(result["peers"]), role="guest"))


@app.command("connect")
def connect(
    host: Annotated[str, typer.Argument(help="The other device's address.")],
    port: Annotated[int, typer.Argument(help="Its port, from `lan status` on that device.", min=1, max=65_535)],
) -> None:
    """Connect to a device that was not found by itself, and again whenever the connection ends."""
    params = {"host": host, "port": port}
    run_command(Request("lan/connect", params, lambda result: _show_peers([result]), role="guest"))


@app.command("pair")
def pair(
    code: Annotated[
        str | None, typer.Argument(help="The code that the other device shows, or the text of its QR code; `-`: stdin.")
    ] = None,
    *,
    host: Annotated[str | None, typer.Option(help="The other device's address, if it is not found by itself.")] = None,
    port: Annotated[int | None, typer.Option(help="Its port, with the address.", min=1, max=65_535)] = None,
    cancel: Annotated[bool, typer.Option("--cancel", help="End the code that is shown, as Ctrl-C does.")] = False,
) -> None:
    """Show a pairing code, or pair with the device that shows one. For devices without an account or a cloud."""
    if cancel:
        run_command(Request("lan/cancelPairing", {}, _show_status, role="guest"))
        return
    given = None if code is None else text_argument(code).strip()
    params = given_params({"code": given, "host": host, "port": port})
    show = _show_code if code is None else _show_paired
    request = Request("lan/pair", params, show, role="guest", repeatable=False)
    if code is not None or cli_context().json:
        run_command(request)
        return
    if sys.platform != "win32":
        signal.signal(signal.SIGHUP, signal.default_int_handler)  # the terminal's window is closed
    try:
        run_command(request)
        _wait_for_pairing()
    except KeyboardInterrupt:
        run_command(Request("lan/cancelPairing", {}, lambda _: None, role="guest"))
        raise


@app.command("forget")
def forget(device_id: Annotated[str, typer.Argument(help="The paired device's id, from `lan status`.")]) -> None:
    """End a pairing at once. The device may be paired again; `devices revoke` excludes it for good."""
    params = {"deviceId": device_id}
    run_command(Request("lan/forget", params, lambda result: _show_paired_devices(result["paired"]), role="guest"))


def _show_code(result: dict[str, Any]) -> None:
    if sys.stdout.isatty():
        import segno  # noqa: PLC0415 - for this command alone

        segno.make(result["uri"], error="l", micro=False).terminal(compact=True)
    code = result["code"]
    half = len(code) // 2
    say(
        "code: {code}   (on the other device: xiaobai-memory lan pair CODE)",
        code=f"{code[:half]} {code[half:]}",
    )
    say("text of the QR code: {uri}", uri=result["uri"])
    say("good once, until {expiresAt}", **result)


def _wait_for_pairing() -> None:
    """Wait until the shown code was entered, or is no longer good. Raises PeerRefused."""
    pairing: dict[str, Any] = {"state": "waiting", "cause": "code_expired"}

    def look(status: dict[str, Any]) -> None:
        nonlocal pairing
        pairing = status["pairing"] or pairing  # none if the sidecar was too busy to answer

    ends_at = time.monotonic() + WAIT_SECONDS
    while pairing["state"] == "waiting" and time.monotonic() < ends_at:
        time.sleep(POLL_SECONDS)
        run_command(Request("lan/status", {}, look, role="guest"))
    if pairing["state"] != "paired":
        cause = pairing["cause"] or "code_expired"
        raise PeerRefused(f"no device was paired: {cause}", cause=cause, hint="Show a new code.")
    _show_paired(pairing)


def _show_paired(result: dict[str, Any]) -> None:
    say("paired with {name} ({deviceId})", **result)
    say("the other screen shows the same words: {words}", words=" ".join(result["words"]))


def _show_paired_devices(paired: list[dict[str, Any]]) -> None:
    for device in paired:
        connected = localized("connected" if device["connected"] else "not connected")
        say("paired: {name}  {deviceId}  since {pairedAt}  {connected}", **{**device, "connected": connected})
    if not paired:
        say("no device is paired with this one")


def _show_status(result: dict[str, Any]) -> None:
    state = localized(result["state"])
    if result["port"]:
        say("{state} at {address} port {port} (LAN__ENABLED={enabled})", **{**result, "state": state})
    elif result["state"] == "off" and result["enabled"] != "off":
        say("off: no sidecar runs (LAN__ENABLED={enabled})", enabled=result["enabled"])
    else:
        echo(f"{state} (LAN__ENABLED={result['enabled']})")
    if result["problem"]:
        echo(in_own_language(result["problem"]))
    say("other devices of the account: {trusted}, announced on this network: {found}", **result)
    for interface in result["interfaces"]:
        if interface["problem"]:
            echo(f"{interface['address']}: {in_own_language(interface['problem'])}")
    _show_peers(result["peers"])
    if result["paired"]:
        _show_paired_devices(result["paired"])
    if result["pairing"] and result["pairing"]["state"] == "waiting":
        say("a pairing code is shown, until {expires_at}", expires_at=result["pairing"]["expiresAt"])
    for refusal in result["refusals"]:
        who = refusal["deviceId"] or localized("unknown")
        say("refused: {cause}  {address}  {who}  ×{count}  {lastAt}", who=who, **refusal)
        echo(f"  {in_own_language(refusal['hint'])}")


def _show_peers(connected: list[dict[str, Any]]) -> None:
    for peer in connected:
        level = localized("level" if peer["level"] else "exchanging")
        echo(f"{peer['name']}  {peer['deviceId']}  {peer['address']}:{peer['port']}  {level}")
    if not connected:
        say("no device is connected")
