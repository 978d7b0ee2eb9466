"""`login`, `logout`. Neither a code nor a password is ever an argument: other users of the machine can read those."""

import sys
from functools import partial
from typing import Annotated, Any, Final

import typer

from bridge.cli.app_runner import call_in_app
from bridge.cli.arguments import STDIN, read_stdin_line
from bridge.cli.output import echo, echo_error, localized, say
from bridge.cli.runner import call_method, run_with_app
from sync.app import App
from sync.errors import CodeRefused, InvalidInput, RateLimited

MAX_CODE_TRIES: Final = 3  # codes that may be mistyped before the command ends; the server goes on counting


def login(
    who: Annotated[str | None, typer.Argument(help="Phone number or e-mail address; asked for if missing.")] = None,
    *,
    phone: Annotated[str | None, typer.Option(help="Phone number; eleven digits are one of China.")] = None,
    email: Annotated[str | None, typer.Option(help="E-mail address.")] = None,
    code: Annotated[str | None, typer.Option(help="`-`: a code sent before is on stdin; no new one is sent.")] = None,
    password: Annotated[
        bool,
        typer.Option("--password", "--password-stdin", help="With a password: asked for, else one line of stdin."),
    ] = False,
    accept: Annotated[
        bool, typer.Option("--accept", help="Accept this memory as mine; damage has erased its owner.")
    ] = False,
) -> None:
    """Log in with a code that is sent to you, or with a password.

    The first login makes this memory that account's, with everything recorded before. Without a terminal a code is only
    sent; `--code -` brings it.
    """
    contact = _contact_params(who, phone, email)
    if code not in {None, STDIN}:
        raise InvalidInput("a code is no argument", field="code", hint="Use `--code -` and give it on stdin.")
    if password:
        params = {**contact, "password": _read_password(), "accept": accept}
        call_method("auth/password", params, _show_account)
    elif code is not None:
        params = {**contact, "code": read_stdin_line(), "accept": accept}
        call_method("auth/verify", params, _show_account)
    elif not sys.stdin.isatty():
        call_method("auth/start", contact, _show_code_sent)
    else:
        run_with_app(partial(_log_in_with_code, contact, accept), _show_account)


def logout(
    *,
    remove: Annotated[
        bool | None, typer.Option("--remove/--keep", help="Remove this memory from this machine, or leave it here.")
    ] = None,
    even_unsent: Annotated[
        bool, typer.Option("--even-unsent", help="With --remove: also what the cloud does not have yet.")
    ] = False,
) -> None:
    """Log out. The memory stays here and belongs to that account, unless you remove it."""
    if remove is None and sys.stdin.isatty() and sys.stderr.isatty():
        remove = typer.confirm(localized("Remove this memory from this machine too?"), default=False, err=True)
    params = {"localCopy": "remove" if remove else "keep", "evenUnsent": even_unsent}
    call_method("auth/logout", params, _show_account)


async def _log_in_with_code(contact: dict[str, str], accept: bool, app: App) -> Any:
    """Send a code, ask for it, and ask again if it was mistyped. Nothing else runs here meanwhile."""
    try:
        sent: Any = await call_in_app(app, "auth/start", contact)
        say("A code was sent to {contact}.", err=True, **sent)
    except RateLimited as error:  # one was sent a moment ago, and is still good
        echo_error(error)
    for tries in range(1, MAX_CODE_TRIES + 1):
        params = {**contact, "code": typer.prompt(localized("Code"), err=True), "accept": accept}
        try:
            return await call_in_app(app, "auth/verify", params)
        except (CodeRefused, InvalidInput) as error:
            if tries == MAX_CODE_TRIES:
                raise
            echo_error(error)
    raise AssertionError("the last try returns or raises")


def _contact_params(who: str | None, phone: str | None, email: str | None) -> dict[str, str]:
    """The parameters that name a person. Whether they are a number or an address, the methods say."""
    given = {name: value for name, value in (("phone", phone), ("email", email)) if value is not None}
    if len(given) + (who is not None) > 1:
        raise InvalidInput("give one phone number or one e-mail address", field="who")
    if given:
        return given
    if who is None and not sys.stdin.isatty():
        raise InvalidInput("whom to log in?", field="who", hint="Give a phone number or an e-mail address.")
    who = who or str(typer.prompt(localized("Phone number or e-mail address"), err=True))
    return {"email" if "@" in who or "＠" in who else "phone": who}


def _read_password() -> str:
    """From a person at a terminal, else one line of standard input."""
    if sys.stdin.isatty():
        return str(typer.prompt(localized("Password"), hide_input=True, err=True))
    return read_stdin_line()


def _show_code_sent(result: dict[str, Any]) -> None:
    say("A code was sent to {contact}. Log in with it: the same command with `--code -`.", **result)


def _show_account(result: dict[str, Any]) -> None:
    account = result["account"]
    state = localized(account["state"].replace("_", " "))
    if account["label"]:
        say("{state} as {label}", state=state, label=account["label"])
    else:
        echo(state)
