"""Logging in to a Supabase project: supabase-py's Auth client over our own HTTP client, its errors as ours.

Sessions are neither kept nor refreshed by the library, and an answer of 429 never reaches it (`http.py`). Auth says
what is wrong by an error code (supabase.com/docs/guides/auth/debugging/error-codes; github.com/supabase/auth,
`internal/api/apierrors`); servers older than the codes are read by their status. One code stands for a wrong, an
expired and a used code alike, so nobody here can tell them apart.
"""

from collections.abc import Awaitable
from typing import Final, TypeVar

from supabase_auth import AsyncGoTrueClient
from supabase_auth.errors import AuthApiError, AuthError, CustomAuthError
from supabase_auth.types import AuthResponse, SignInWithPasswordCredentials, VerifyOtpParams

from sync.clock import Clock
from sync.cloud.contact import Contact, label_of
from sync.cloud.http import NO_CONNECTION, Wire, unreachable
from sync.cloud.logins import Session
from sync.errors import (
    BadCredentials,
    CloudError,
    CloudUnavailable,
    CodeRefused,
    InvalidInput,
    LoginRefused,
    LoginRequired,
    MessageNotSent,
    RateLimited,
    XiaobaiError,
)

T = TypeVar("T")

LONGEST_TOKEN: Final = 604_800  # seconds; no project can grant more, so whatever an answer says, no more is believed

TURN_ON: Final = "Turn it on in the project (Authentication → Sign In / Providers), or log in the other way."
ASK: Final = "Ask whoever runs the Supabase project."
CONFIRM: Final = "Log in with a code instead of the password: that confirms it."

# Auth's error codes: our error, what a person is told, and what he can do where the kind's own hint is not enough
REFUSALS: Final[dict[str, tuple[type[CloudError], str, str | None]]] = {
    "invalid_credentials": (BadCredentials, "the number or address, or the password, is wrong", None),
    "otp_expired": (CodeRefused, "the code is wrong or no longer good", None),
    "otp_disabled": (LoginRefused, "there is no account of that number or address", ASK),
    "signup_disabled": (LoginRefused, "there is no such account, and the project lets nobody make one", ASK),
    "user_banned": (LoginRefused, "the project has blocked this account", ASK),
    "phone_provider_disabled": (LoginRefused, "the project offers no login by phone number", TURN_ON),
    "email_provider_disabled": (LoginRefused, "the project offers no login by e-mail", TURN_ON),
    "phone_not_confirmed": (LoginRefused, "the phone number was never confirmed", CONFIRM),
    "email_not_confirmed": (LoginRefused, "the e-mail address was never confirmed", CONFIRM),
    "captcha_failed": (
        LoginRefused,
        "the project asks for a CAPTCHA, which only the app can show",
        "Log in in the app, which hands its session over (auth/setSession).",
    ),
    "sms_send_failed": (MessageNotSent, "the SMS could not be sent", None),
    "email_address_not_authorized": (
        MessageNotSent,
        "the project's built-in mailer writes to its own team only",
        "Set up an SMTP server in the project, or log in with the password.",
    ),
    "session_not_found": (LoginRequired, "the session was ended by the server", None),
    "session_expired": (LoginRequired, "the session has expired", None),
    "refresh_token_not_found": (LoginRequired, "the session was ended by the server", None),
    "refresh_token_already_used": (LoginRequired, "the session was ended: its token had been used before", None),
    "user_not_found": (LoginRequired, "the account is gone", None),
    "bad_jwt": (LoginRequired, "the server does not know this token", None),
    "no_authorization": (LoginRequired, "the server does not know this token", None),
    "hook_timeout": (CloudUnavailable, "the login server does not answer in time", None),
    "conflict": (CloudUnavailable, "another login was under way", None),
}
IMPOSSIBLE: Final = frozenset({"validation_failed", "email_address_invalid"})
# what a code that is not known here means a refusal with; any other status may be of the moment and ends no session
REFUSING: Final = frozenset({400, 401, 403, 422})
BEFORE_THE_CODES: Final = frozenset({400, 401})  # 403 without a code is a firewall's


class SupabaseLogins:
    """`url` of the project's Auth; `key` the publishable one."""

    def __init__(self, url: str, key: str, wire: Wire, *, clock: Clock) -> None:
        self._wire = wire
        self._clock = clock
        self._auth = AsyncGoTrueClient(
            url=url,
            headers={"apikey": key},
            auto_refresh_token=False,
            persist_session=False,
            http_client=wire.client,
        )

    async def start(self, contact: Contact) -> None:
        if contact.kind == "phone":
            await self._asked(contact, self._auth.sign_in_with_otp({"phone": contact.value}))
        else:
            await self._asked(contact, self._auth.sign_in_with_otp({"email": contact.value}))

    async def verify(self, contact: Contact, code: str) -> Session:
        params: VerifyOtpParams = (
            {"phone": contact.value, "token": code, "type": "sms"}
            if contact.kind == "phone"
            else {"email": contact.value, "token": code, "type": "email"}
        )
        return await self._session(self._asked(contact, self._auth.verify_otp(params)), contact.label)

    async def sign_in(self, contact: Contact, password: str) -> Session:
        credentials: SignInWithPasswordCredentials = (
            {"phone": contact.value, "password": password}
            if contact.kind == "phone"
            else {"email": contact.value, "password": password}
        )
        answer = self._asked(contact, self._auth.sign_in_with_password(credentials))
        return await self._session(answer, contact.label)

    async def refresh(self, session: Session) -> Session:
        try:
            return await self._session(self._told(self._auth.refresh_session(session.refresh_token)), session.label)
        except (BadCredentials, LoginRefused, InvalidInput) as error:
            raise LoginRequired("the session was ended by the server") from error

    async def identify(self, access_token: str) -> tuple[str, str]:
        try:
            answer = await self._told(self._auth.get_user(access_token))
        except (BadCredentials, LoginRefused, InvalidInput) as error:
            raise LoginRequired("the server does not know this token") from error
        if answer is None:
            raise LoginRequired("the server does not know this token")
        user = answer.user
        return user.id, label_of(user.id, email=user.email, phone=user.phone)

    async def sign_out(self, session: Session) -> None:
        check_token(session)
        await self._told(self._auth.admin.sign_out(session.access_token, "local"))

    async def _session(self, answering: Awaitable[AuthResponse], label: str) -> Session:
        """The server says for how long; until when is a matter of our own clock, which it is compared with.

        Counted from the question: a machine may sleep before it hears the answer.
        """
        asked_at = self._clock.now().timestamp()
        answer = await answering
        if answer.session is None:
            raise CloudUnavailable("the server signed nobody in")
        found = answer.session
        seconds = min(max(found.expires_in, 0), LONGEST_TOKEN)
        return Session(found.user.id, label, found.access_token, found.refresh_token, asked_at + seconds)

    async def _asked(self, contact: Contact, call: Awaitable[T]) -> T:
        """A call that a person is waiting for: how long to wait, and which of his words is impossible."""
        try:
            return await self._told(call)
        except InvalidInput as error:
            raise InvalidInput(error.message, field=contact.kind) from error
        except RateLimited as error:
            wait = "a minute" if error.retry_after is None else f"{error.retry_after:.0f} s"
            hint = f"Wait {wait}, then try again. A code sent before is good until the next one."
            raise RateLimited("too many messages or attempts", hint=hint, retry_after=error.retry_after) from error

    async def _told(self, call: Awaitable[T]) -> T:
        try:
            return await self._wire.told(call)
        except AuthError as error:
            if isinstance(error.__cause__, NO_CONNECTION):  # the library hides it among its own
                raise unreachable(error, "no connection to the login server") from error
            raise _refusal(error) from error


def check_token(session: Session) -> None:
    """Without a token that can be sent the server would take us for anybody."""
    token = session.access_token
    if not token or not token.isascii() or not token.isprintable():
        raise LoginRequired("the session holds no token")


def _refusal(error: AuthError) -> XiaobaiError:
    """Auth's refusal as ours. Its own sentence may hold a number or an address, so it is not passed on."""
    status = error.status if isinstance(error, AuthApiError | CustomAuthError) else 0
    code: str | None = error.code
    if code in REFUSALS:
        kind, message, hint = REFUSALS[code]
        return kind(message, hint=hint)
    if code in IMPOSSIBLE:
        return InvalidInput("the login server finds this number or address impossible")
    if code is None and status in BEFORE_THE_CODES:
        return BadCredentials(f"the login was refused ({status})")
    if code is not None and status in REFUSING:
        return LoginRefused(f"the login was refused ({code})")
    return CloudUnavailable(f"the login server answered {code or status or 'nothing'}")
