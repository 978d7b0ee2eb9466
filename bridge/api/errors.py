"""The table that turns an exception into a JSON-RPC error, an exit status and a line for a person.

Decisions that live here
    * Programs switch on `kind`, never on the text. A code belongs to exactly one kind, so either will do.
    * Codes avoid -32001, -32002 and -32096…-32099: language-server and MCP clients give those meanings of their own.
    * An unforeseen exception answers -32603 with the name of its class only: the text of a foreign exception
      may hold a message, a path or a token. Where it happened goes to the log as file, line and function.
    * A kind without a code of its own takes that of its nearest ancestor, so a new error always has a code.
"""

from typing import Final

import msgspec
from msgspec.structs import replace

from sync.errors import InvalidInput, XiaobaiError
from sync.texts.language import EN, Language

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
REQUEST_CANCELLED: Final = -32800  # the language-server protocol's number; clients know it

ERROR_CODES: Final[dict[str, int]] = {
    "internal": INTERNAL_ERROR,
    "parse_error": PARSE_ERROR,
    "invalid_request": INVALID_REQUEST,
    "unknown_method": METHOD_NOT_FOUND,
    "invalid_input": INVALID_PARAMS,
    "too_large": INVALID_PARAMS,
    "cancelled": REQUEST_CANCELLED,
    # the program as a whole: -32010…
    "bad_setting": -32010,
    "service_key_refused": -32011,
    "already_running": -32012,
    "deadline_exceeded": -32013,
    "shutting_down": -32014,
    "answer_too_large": -32015,
    "account_changed": -32016,
    # this machine: -32020…
    "storage_error": -32020,
    "storage_full": -32021,
    "storage_read_only": -32022,
    "storage_busy": -32023,
    "storage_corrupt": -32024,
    "schema_too_new": -32025,
    "redaction_failed": -32026,
    "document_untouchable": -32027,
    "document_changed": -32028,
    "key_lost": -32029,
    # the cloud: -32030…
    "cloud_error": -32030,
    "cloud_unavailable": -32031,
    "rate_limited": -32032,
    "cloud_not_configured": -32033,
    "login_required": -32034,
    "bad_credentials": -32035,
    "different_user": -32036,
    "forbidden": -32037,
    "schema_mismatch": -32038,
    "rejected": -32039,
    "device_forked": -32040,
    "device_conflict": -32041,
    "code_refused": -32042,
    "login_refused": -32043,
    "message_not_sent": -32044,
    "device_revoked": -32045,
    "device_key_in_use": -32046,
    "device_unknown": -32047,
    "not_synced": -32048,
    "quota_exceeded": -32049,
    # the local network: -32050…
    "lan_error": -32050,
    "lan_off": -32051,
    "peer_unreachable": -32052,
    "peer_refused": -32053,
}

EXIT_FAILURE: Final = 1
EXIT_USAGE: Final = 2


class RpcErrorData(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """`data` of a JSON-RPC error. `field` names the parameter at fault; `retryAfter` is in seconds.

    No default for the first three: omit_defaults must never drop them from the wire.
    """

    kind: str
    hint: str
    retryable: bool
    field: str | None = None
    retry_after: float | None = None


class RpcError(msgspec.Struct, frozen=True):
    """One answerable failure, the `error` member of a JSON-RPC answer."""

    code: int
    message: str
    data: RpcErrorData


def rpc_error(kind: str, message: str, hint: str, *, retryable: bool = False) -> RpcError:
    """A failure of the interface itself, by its kind."""
    return RpcError(ERROR_CODES[kind], message, RpcErrorData(kind, hint, retryable))


def rpc_error_of(error: BaseException) -> RpcError:
    """What to answer for an exception; never its text unless the text was written for people (`XiaobaiError`)."""
    known = first_product_error(error)
    if known is None:
        hint = XiaobaiError.default_hint
        return rpc_error("internal", f"internal error ({type(error).__name__})", hint)
    data = RpcErrorData(
        kind=known.kind,
        hint=known.hint,
        retryable=known.retryable,
        field=known.field if isinstance(known, InvalidInput) else None,
        retry_after=getattr(known, "retry_after", None),
    )
    return RpcError(rpc_code_of(type(known)), known.message, data)


def in_language(error: RpcError, language: Language) -> RpcError:
    """The error with its sentences in a language; `kind` and `code` are the same in all."""
    if language is EN:
        return error
    from sync.texts.table import translated  # noqa: PLC0415 - most answers are no errors

    hint = translated(error.data.hint, language)
    return replace(error, message=translated(error.message, language), data=replace(error.data, hint=hint))


def first_product_error(error: BaseException) -> XiaobaiError | None:
    """The first error of our tree in an exception or, depth first, in an exception group (a task group wraps them)."""
    if isinstance(error, XiaobaiError):
        return error
    if isinstance(error, BaseExceptionGroup):
        return next((found for part in error.exceptions if (found := first_product_error(part)) is not None), None)
    return None


def rpc_code_of(error: type[XiaobaiError]) -> int:
    """The JSON-RPC code of an error class: its own kind's, else the nearest ancestor's."""
    for ancestor in error.__mro__:
        code = ERROR_CODES.get(getattr(ancestor, "kind", ""))
        if code is not None:
            return code
    return INTERNAL_ERROR


def exit_code_of(error: BaseException) -> int:
    """1 for a failure, 2 when the caller's own input is at fault."""
    return EXIT_USAGE if isinstance(first_product_error(error), InvalidInput) else EXIT_FAILURE


def terminal_lines(error: BaseException) -> list[str]:
    """What stderr shows: what happened, and what can be done about it."""
    answer = rpc_error_of(error)
    return [f"error: {answer.message}", f"hint: {answer.data.hint}"]
