"""What the program asks of a login server: `supabase_logins.py` is the real one, `memory_logins.py` its twin.

Errors of every implementation: CloudUnavailable (outcome unknown), RateLimited (with the seconds to wait, where the
server says them), BadCredentials and below it CodeRefused, LoginRefused (the project does not let this person in, or
not this way), MessageNotSent, InvalidInput (the server finds the number or the address impossible), LoginRequired (of
a session or token that is over).
"""

import json
from base64 import urlsafe_b64decode
from dataclasses import dataclass
from typing import Final, Protocol

from sync.cloud.contact import Contact

RESEND_SECONDS: Final = (
    60.0  # GoTrue's `max_frequency`: between two messages to one person, unless a project changes it
)


@dataclass(frozen=True, slots=True)
class AuthSession:
    """Who is logged in. `expires_at` in Unix seconds; without a refresh token somebody else refreshes it."""

    user_id: str
    label: str
    access_token: str
    refresh_token: str | None
    expires_at: float

    @property
    def login_id(self) -> str:
        """Which login the token comes from (the claim `session_id`), the same after a refresh; empty where none says.

        Read without a check of the signature: it decides only when this program registers its device again.
        """
        try:
            claims = json.loads(urlsafe_b64decode(self.access_token.split(".")[1] + "=="))
            return str(claims["session_id"])
        except (IndexError, KeyError, TypeError, ValueError, RecursionError):
            return ""

    def __repr__(self) -> str:  # tokens must not reach a log through a traceback
        return f"Session(user_id={self.user_id!r})"


class AuthPort(Protocol):
    """How a session is obtained, kept alive and ended. Whose memory it opens is not decided here."""

    async def send_code(self, contact: Contact) -> None:
        """Send a code there. An account that does not exist yet is made when the code is verified."""
        ...

    async def verify_code(self, contact: Contact, code: str) -> AuthSession:
        """A session for the code of the newest message. CodeRefused where it is wrong, too old or used."""
        ...

    async def sign_in_with_password(self, contact: Contact, password: str) -> AuthSession: ...

    async def refresh_session(self, session: AuthSession) -> AuthSession:
        """A new session for an old one. LoginRequired where the server has revoked it."""
        ...

    async def identify_user(self, access_token: str) -> tuple[str, str]:
        """Whose token this is: user id and label. LoginRequired where the server does not know it."""
        ...

    async def sign_out(self, session: AuthSession) -> None: ...
