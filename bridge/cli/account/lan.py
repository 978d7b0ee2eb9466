"""`lan status | peers | connect`: devices of the account that sync directly, on the local network."""

from typing import Annotated, Any

import typer

from bridge.cli.runner import CommandApp, run_command
from bridge.cli.sidecar_runner import Request

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


def _show_status(result: dict[str, Any]) -> None:
    where = f" at {result['address']} port {result['port']}" if result["port"] else ""
    print(f"{result['state']}{where} (LAN__ENABLED={result['enabled']})")
    if result["problem"]:
        print(result["problem"])
    print(f"other devices of the account: {result['trusted']}, announced on this network: {result['found']}")
    for interface in result["interfaces"]:
        if interface["problem"]:
            print(f"{interface['address']}: {interface['problem']}")
    _show_peers(result["peers"])
    for refusal in result["refusals"]:
        who = refusal["deviceId"] or "unknown"
        print(f"refused: {refusal['cause']}  {refusal['address']}  {who}  ×{refusal['count']}  {refusal['lastAt']}")
        print(f"  {refusal['hint']}")


def _show_peers(connected: list[dict[str, Any]]) -> None:
    for peer in connected:
        level = "level" if peer["level"] else "exchanging"
        print(f"{peer['name']}  {peer['deviceId']}  {peer['address']}:{peer['port']}  {level}")
    if not connected:
        print("no device is connected")
