"""The login server as a protocol. Implemented by `supabase/auth.py` and `fake/auth.py`.

Errors: CloudUnavailable (outcome unknown), RateLimited (with the seconds to wait, if known), BadCredentials and its
subclass CodeRefused, LoginRefused (the project does not admit this user, or not this way), MessageNotSent,
InvalidInput (the server rejects the number or address), LoginRequired (the session or token has ended).
"""

import json
from base64 import urlsafe_b64decode
from typing import Final, Literal, Protocol

import msgspec

from sync.cloud.contact import Contact

RESEND_SECONDS: Final = 60.0  # between two messages to one user: the default of GoTrue's `max_frequency`


class AccountJson(msgspec.Struct, frozen=True, rename="camel"):
    """The account of a profile. The user id and label are the profile's owner, also while logged out."""

    state: Literal["not_configured", "guest", "logged_out", "logged_in"]
    user_id: str | None
    label: str | None


class AuthSession(msgspec.Struct, frozen=True):
    """A login. `expires_at` is in Unix seconds. Without a refresh token, the app refreshes the session."""

    user_id: str
    label: str
    access_token: str
    refresh_token: str | None
    expires_at: float

    @property
    def login_id(self) -> str:
        """The token's claim `session_id`, which a refresh does not change; empty if there is none.

        The signature is not checked: the value only decides when this program registers its device again.
        """
        try:
            claims = json.loads(urlsafe_b64decode(self.access_token.split(".")[1] + "=="))
            return str(claims["session_id"])
        except (IndexError, KeyError, TypeError, ValueError, RecursionError):
            return ""

    def __repr__(self) -> str:  # tokens must not reach a log through a traceback
        return f"Session(user_id={self.user_id!r})"


class AuthPort(Protocol):
    """Obtains, refreshes and ends sessions."""

    async def send_code(self, contact: Contact) -> None:
        """Send a login code. Verifying it creates the account if there is none."""
        ...

    async def verify_code(self, contact: Contact, code: str) -> AuthSession:
        """Log in with the newest code. CodeRefused if it is wrong, expired or used."""
        ...

    async def sign_in_with_password(self, contact: Contact, password: str) -> AuthSession: ...

    async def refresh_session(self, session: AuthSession) -> AuthSession:
        """Refresh a session. LoginRequired if the server has revoked it."""
        ...

    async def identify_user(self, access_token: str) -> tuple[str, str]:
        """The user id and label of a token. LoginRequired if the server does not know it."""
        ...

    async def sign_out(self, session: AuthSession) -> None: ...
