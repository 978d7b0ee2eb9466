"""`devices …` and `changes …`: the account's devices, and what they change in the memory of each other."""

import sys
from typing import Annotated, Any, Final

import typer

from bridge.cli.display import change_lines
from bridge.cli.output import echo, localized, say
from bridge.cli.runner import CommandApp, call_method
from sync.log.authorship import one_line

app = CommandApp(help="The account's devices: how they are called, who may go on, which are shown here.")
changes = CommandApp(help="What one device changes in the memory of another: accept or refuse it, for all devices.")

ChangeNames = Annotated[
    list[str] | None, typer.Argument(help="Ids of changes, or of devices for all of theirs; all that wait if none.")
]
DeviceId = Annotated[str, typer.Argument(help="The device's id, from `devices list`.")]


@app.command("list")
def list_devices() -> None:
    """Every device, revoked ones too; without the cloud, what is known here."""
    call_method("devices/list", {}, _show_devices)


@app.command("rename")
def rename(
    device_id: DeviceId,
    name: Annotated[str, typer.Argument(help="What all devices call it from now on.")],
) -> None:
    """Give a device a name."""
    call_method("devices/rename", {"deviceId": device_id, "name": name}, _show_devices)


@app.command("revoke")
def revoke(
    device_id: DeviceId,
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Exclude a lost device from the account. It cannot be undone."""
    if not yes and sys.stdin.isatty():
        typer.confirm(localized("It can never sync again. Revoke it?"), abort=True, err=True)
    call_method("devices/revoke", {"deviceId": device_id}, _show_devices)


@app.command("admit")
def admit(
    device_id: Annotated[str | None, typer.Argument(help="The new device's id; without one, this device.")] = None,
    *,
    recover: Annotated[
        bool, typer.Option("--recover", help="Admit this device, if no admitted one was used for 14 days.")
    ] = False,
) -> None:
    """Say that a new device is yours: what it corrects in the memory of the others holds from now on."""
    call_method("devices/admit", {"deviceId": device_id, "recover": recover}, _show_devices)


@app.command("refuse")
def refuse(
    device_id: DeviceId,
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
) -> None:
    """Say that a device is not yours: refuse what it changed, and exclude it. It cannot be undone."""
    if not yes and sys.stdin.isatty():
        typer.confirm(localized("It can never sync again. Refuse it?"), abort=True, err=True)
    call_method("devices/refuse", {"deviceId": device_id}, _show_devices)


@changes.command("list")
def list_changes() -> None:
    """New devices, what devices would change in the memory of others, and what they changed lately."""
    call_method("changes/list", {}, show_changes)


@changes.command("accept")
def accept_changes(names: ChangeNames = None) -> None:
    """Let changes hold on all devices. Those of identity, health and safety are named one by one."""
    call_method("changes/accept", {"ids": names or []}, show_changes)


@changes.command("refuse")
def refuse_changes(names: ChangeNames = None) -> None:
    """Undo changes, or keep them from holding, on all devices."""
    call_method("changes/refuse", {"ids": names or []}, show_changes)


@app.command("hide")
def hide(device_id: DeviceId) -> None:
    """Hide a device in what `load` shows on this device."""
    call_method("devices/hide", {"deviceId": device_id, "hidden": True}, _show_devices)


@app.command("show")
def unhide(device_id: DeviceId) -> None:
    """Show a hidden device again."""
    call_method("devices/hide", {"deviceId": device_id, "hidden": False}, _show_devices)


WIDTH: Final = 1_000  # of the list: no id is cut off, because commands need it
LOGIN_WARNINGS = {
    "unknown": "the server knows no login of it, so none was ended: sign out everywhere if it may be in other hands",
    "open": "the server could not end its logins and refuses its calls: sign out everywhere as well",
}


def show_changes(result: dict[str, Any]) -> None:
    for event_id in result["answered"]:
        say("answered {event_id}", event_id=event_id)
    for line in change_lines(result):
        echo(line)
    if not result["devices"]:
        say("nothing waits")


def _show_devices(result: dict[str, Any]) -> None:
    from rich.console import Console  # noqa: PLC0415 - only for people
    from rich.table import Table  # noqa: PLC0415
    from rich.text import Text  # noqa: PLC0415

    table = Table(box=None, pad_edge=False)
    for title in ("name", "device", "platform", "version", "last seen", ""):
        table.add_column(title and localized(title), no_wrap=True)
    for device in result["devices"]:
        words = [word for word in ("thisDevice", "revoked", "hidden", "paired") if device[word]]
        cells = [device["name"], device["deviceId"], device["platform"], device["appVersion"], device["lastSeenAt"]]
        marks = ", ".join(localized("this device" if word == "thisDevice" else word) for word in words)
        table.add_row(*(Text(one_line(cell or "-")) for cell in cells), marks)  # as text: a name is no markup
    Console(width=WIDTH).print(table)
    if result["logins"] in LOGIN_WARNINGS:
        say(LOGIN_WARNINGS[result["logins"]], err=True)
    if result["source"] == "local":
        if result["asOf"]:
            say("what is known here, without the cloud, as of {asOf}", err=True, **result)
        else:
            say("what is known here, without the cloud, which never answered", err=True)
