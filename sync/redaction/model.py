"""Kinds, spans and the two proofs of redaction, `Clean` and `CleanPayload`.

Only this package can create the proofs, so a store that accepts only them cannot get raw text by mistake. The methods
of `str` return a plain `str`, which has to pass the redactor again.
"""

from typing import Any, Final, NoReturn, Self, final

import msgspec

PHONE: Final = "手机号"
IDENTITY: Final = "身份证号"
BANK_CARD: Final = "银行卡号"
COMPANY: Final = "统一社会信用代码"
LANDLINE: Final = "电话号码"
EMAIL: Final = "邮箱"
KEY: Final = "密钥"
PASSWORD: Final = "密码"  # noqa: S105 - the name of a kind
TOKEN: Final = "令牌"  # noqa: S105 - the name of a kind
CODE: Final = "验证码"
PASSPORT: Final = "护照号"
PERMIT: Final = "通行证号"
PLATE: Final = "车牌号"
SSN: Final = "社会安全号"
WECHAT: Final = "微信号"
ADDRESS: Final = "地址"
DOCUMENT: Final = "证件号"
ACCOUNT: Final = "账号"
CUSTOM: Final = "自定义"

KINDS: Final = (
    *(PHONE, LANDLINE, IDENTITY, BANK_CARD, COMPANY, EMAIL, KEY, PASSWORD, TOKEN, CODE),
    *(PASSPORT, PERMIT, PLATE, SSN, WECHAT, ADDRESS, DOCUMENT, ACCOUNT, CUSTOM),
)

SECRET_KINDS: Final = frozenset((KEY, PASSWORD, TOKEN, CODE))

_SEAL: Final = object()


class SecretSpan(msgspec.Struct, frozen=True, order=True):
    """A value from `start` up to but not including `end`. `kind` is one of `KINDS`."""

    start: int
    end: int
    kind: str


class ExaminedText(msgspec.Struct, frozen=True):
    """A clean text, and how often each kind was found in it, the most frequent first."""

    text: "Clean"
    counts: dict[str, int]


def placeholder(kind: str) -> str:
    """The replacement of a value: its kind in brackets."""
    return f"[{kind}]"


@final
class Clean(str):
    """Text that has passed the redactor. Only `Redactor` creates it."""

    __slots__ = ()

    def __new__(cls, text: str, seal: object) -> Self:
        if seal is not _SEAL:
            raise TypeError("Clean text comes from Redactor.clean only")
        return super().__new__(cls, text)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("Clean text is not pickled: a proof cannot be read from bytes")

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        self.__reduce__()


@final
class CleanPayload:
    """A JSON object whose keys and strings have all passed the redactor. Only `Redactor` creates it.

    `value` is a new copy each time, so that changing it does not change the proof.
    """

    __slots__ = ("_value",)

    def __init__(self, value: dict[str, Any], seal: object) -> None:
        if seal is not _SEAL:
            raise TypeError("a CleanPayload comes from Redactor.clean_payload only")
        object.__setattr__(self, "_value", value)

    @property
    def value(self) -> dict[str, Any]:
        copied: dict[str, Any] = _copy_json(self._read())
        return copied

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError("a CleanPayload is frozen")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError("a CleanPayload is frozen")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, CleanPayload) and self._read() == other._read()

    def __hash__(self) -> int:
        return hash(tuple(sorted(self._read())))

    def __repr__(self) -> str:
        return f"CleanPayload({len(self._read())} keys)"

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        raise TypeError("a CleanPayload is not pickled: a proof cannot be read from bytes")

    def _read(self) -> dict[str, Any]:
        value: dict[str, Any] = object.__getattribute__(self, "_value")
        return value


def seal_text(text: str) -> Clean:
    """Create the proof. Only the redactor may call this."""
    return Clean(text, _SEAL)


def seal_payload(value: dict[str, Any]) -> CleanPayload:
    """Create the proof. Only the redactor may call this."""
    return CleanPayload(value, _SEAL)


def _copy_json(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _copy_json(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_copy_json(inner) for inner in value]
    return value
