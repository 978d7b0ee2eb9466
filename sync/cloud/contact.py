"""A phone number or an e-mail address to log in with.

Typed and pasted numbers are normalised: full-width digits, spaces, dashes and invisible marks. Eleven digits that begin
with 1 are a Chinese mobile number; any other number needs its country code, because a guess could send the code to a
stranger. Logs and errors never contain a contact, and `status` shows a phone number only masked.
"""

import re
import unicodedata
from typing import Final, Literal

import msgspec

from sync.errors import InvalidInput

E164: Final = re.compile(r"\+[1-9][0-9]{6,14}")  # ITU-T E.164: at most 15 digits; shorter than 7 gets no messages
CHINA_MOBILE: Final = re.compile(r"1[0-9]{10}")
# characters between digits, and Unicode categories of such: spaces, dashes, format marks, controls
SEPARATORS: Final = frozenset("().·")
SEPARATOR_CATEGORIES: Final = frozenset({"Zs", "Pd", "Cf", "Cc"})
EMAIL_ADDRESS: Final = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+")
MAX_EMAIL_LENGTH: Final = 254  # characters, RFC 5321 §4.5.3.1.3 less its two brackets
LOGIN_CODE: Final = re.compile(r"[0-9]{6,10}")  # Supabase lets a project choose a length between 6 and 10


class Contact(msgspec.Struct, frozen=True):
    """A valid phone number in E.164 or e-mail address. Made by `parse_contact`."""

    kind: Literal["phone", "email"]
    value: str

    @property
    def label(self) -> str:
        """What users recognise the account by: the address, or the masked number."""
        return self.value if self.kind == "email" else self.masked

    @property
    def masked(self) -> str:
        """138****5678, +14****2671, p***@example.com: enough to notice a typing error."""
        if self.kind == "email":
            name, _, domain = self.value.rpartition("@")
            return f"{name[0]}***@{domain}"
        number = self.value.removeprefix("+86")
        shown = max(0, min(4, len(number) - 7))  # digits at the end; at least four stay hidden
        return f"{number[:3]}****{number[len(number) - shown :]}"

    def __repr__(self) -> str:  # keeps it out of logs and tracebacks
        return f"Contact({self.kind})"


def parse_contact(*, phone: str | None = None, email: str | None = None) -> Contact:
    """The contact from one of the two arguments. Raises InvalidInput for none, for both and for an invalid one."""
    if (phone is None) == (email is None):
        raise InvalidInput("give either phone or email", field="phone" if phone is None else "email")
    return Contact("phone", _parse_phone(phone)) if phone is not None else Contact("email", _parse_email(email or ""))


def parse_login_code(text: str) -> str:
    """The digits of a typed login code. Raises InvalidInput."""
    code = _strip_separators(text)
    if not LOGIN_CODE.fullmatch(code):
        raise InvalidInput("a code has 6 to 10 digits", field="code", hint="Type the digits of the newest message.")
    return code


def account_label(user_id: str, *, email: str | None, phone: str | None) -> str:
    """The label of an account. GoTrue writes phone numbers without the plus."""
    if email:
        return email
    return Contact("phone", f"+{phone.removeprefix('+')}").label if phone else user_id


def _parse_phone(text: str) -> str:
    number = re.sub(r"^00", "+", _strip_separators(text))
    if CHINA_MOBILE.fullmatch(number):
        number = f"+86{number}"
    elif CHINA_MOBILE.fullmatch(number.removeprefix("86")):
        number = f"+{number}"
    if not E164.fullmatch(number):
        raise InvalidInput(
            "not a phone number",
            field="phone",
            hint="Write it with its country, as +86 138 0013 8000; eleven digits from 1 on are taken for China.",
        )
    if number.startswith("+86") and not CHINA_MOBILE.fullmatch(number.removeprefix("+86")):
        raise InvalidInput("not a mobile number of China", field="phone", hint="A number there has eleven digits.")
    return number


def _strip_separators(text: str) -> str:
    """Remove separators, and turn full-width characters into plain ones."""
    plain = unicodedata.normalize("NFKC", text)
    return "".join(
        sign for sign in plain if sign not in SEPARATORS and unicodedata.category(sign) not in SEPARATOR_CATEGORIES
    )


def _parse_email(text: str) -> str:
    """The address as typed, except for the full-width @ of a Chinese input method."""
    address = text.strip().replace("＠", "@")
    if not EMAIL_ADDRESS.fullmatch(address) or len(address) > MAX_EMAIL_LENGTH:
        raise InvalidInput(
            "not an e-mail address", field="email", hint="Write it as name@example.com; nothing was sent."
        )
    return address
