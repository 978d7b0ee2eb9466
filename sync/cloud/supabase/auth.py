"""Log in to a Supabase project with supabase-py's Auth client, and translate its errors.

The library neither stores nor refreshes sessions, and never sees a 429 (`http_client.py`). Auth names a refusal by a
code (supabase.com/docs/guides/auth/debugging/error-codes); older servers have only a status. One code stands for a
wrong, an expired and a used login code.
"""

from collections.abc import Awaitable
from typing import Final, TypeVar

from supabase_auth import AsyncGoTrueClient
from supabase_auth.errors import AuthApiError, AuthError, CustomAuthError
from supabase_auth.types import AuthResponse, SignInWithPasswordCredentials, VerifyOtpParams

from sync.clock import Clock
from sync.cloud.auth_port import AuthSession
from sync.cloud.contact import Contact, account_label
from sync.cloud.supabase.http_client import CONNECT_ERRORS, HttpClient, unreachable_error
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

MAX_TOKEN_SECONDS: Final = 604_800  # no project can grant more, whatever an answer says

ENABLE_PROVIDER_HINT: Final = (
    "Turn it on in the project (Authentication → Sign In / Providers), or log in the other way."
)
ASK_ADMIN_HINT: Final = "Ask whoever runs the Supabase project."
CONFIRM_CONTACT_HINT: Final = "Log in with a code instead of the password: that confirms it."

# Auth's error codes: our error, its message, and a hint if the error's own is not enough
AUTH_ERRORS: Final[dict[str, tuple[type[CloudError], str, str | None]]] = {
    "invalid_credentials": (BadCredentials, "the number or address, or the password, is wrong", None),
    "otp_expired": (CodeRefused, "the code is wrong or no longer good", None),
    "otp_disabled": (LoginRefused, "there is no account of that number or address", ASK_ADMIN_HINT),
    "signup_disabled": (LoginRefused, "there is no such account, and the project lets nobody make one", ASK_ADMIN_HINT),
    "user_banned": (LoginRefused, "the project has blocked this account", ASK_ADMIN_HINT),
    "phone_provider_disabled": (LoginRefused, "the project offers no login by phone number", ENABLE_PROVIDER_HINT),
    "email_provider_disabled": (LoginRefused, "the project offers no login by e-mail", ENABLE_PROVIDER_HINT),
    "phone_not_confirmed": (LoginRefused, "the phone number was never confirmed", CONFIRM_CONTACT_HINT),
    "email_not_confirmed": (LoginRefused, "the e-mail address was never confirmed", CONFIRM_CONTACT_HINT),
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
INVALID_CONTACT_CODES: Final = frozenset({"validation_failed", "email_address_invalid"})
# an unknown code with one of these is a refusal; any other status may be temporary and ends no session
REFUSAL_STATUSES: Final = frozenset({400, 401, 403, 422})
CODELESS_REFUSAL_STATUSES: Final = frozenset({400, 401})  # 403 without a code is a firewall's


class SupabaseAuth:
    """The Auth service at `url`; `key` is the publishable key."""

    def __init__(self, url: str, key: str, http: HttpClient, *, clock: Clock) -> None:
        self._http = http
        self._clock = clock
        self._auth = AsyncGoTrueClient(
            url=url,
            headers={"apikey": key},
            auto_refresh_token=False,
            persist_session=False,
            http_client=http.client,
        )

    async def send_code(self, contact: Contact) -> None:
        if contact.kind == "phone":
            await self._call_for_contact(contact, self._auth.sign_in_with_otp({"phone": contact.value}))
        else:
            await self._call_for_contact(contact, self._auth.sign_in_with_otp({"email": contact.value}))

    async def verify_code(self, contact: Contact, code: str) -> AuthSession:
        params: VerifyOtpParams = (
            {"phone": contact.value, "token": code, "type": "sms"}
            if contact.kind == "phone"
            else {"email": contact.value, "token": code, "type": "email"}
        )
        return await self._session(self._call_for_contact(contact, self._auth.verify_otp(params)), contact.label)

    async def sign_in_with_password(self, contact: Contact, password: str) -> AuthSession:
        credentials: SignInWithPasswordCredentials = (
            {"phone": contact.value, "password": password}
            if contact.kind == "phone"
            else {"email": contact.value, "password": password}
        )
        answer = self._call_for_contact(contact, self._auth.sign_in_with_password(credentials))
        return await self._session(answer, contact.label)

    async def refresh_session(self, session: AuthSession) -> AuthSession:
        try:
            return await self._session(
                self._await_reply(self._auth.refresh_session(session.refresh_token)), session.label
            )
        except (BadCredentials, LoginRefused, InvalidInput) as error:
            raise LoginRequired("the session was ended by the server") from error

    async def identify_user(self, access_token: str) -> tuple[str, str]:
        try:
            answer = await self._await_reply(self._auth.get_user(access_token))
        except (BadCredentials, LoginRefused, InvalidInput) as error:
            raise LoginRequired("the server does not know this token") from error
        if answer is None:
            raise LoginRequired("the server does not know this token")
        user = answer.user
        return user.id, account_label(user.id, email=user.email, phone=user.phone)

    async def sign_out(self, session: AuthSession) -> None:
        check_token(session)
        await self._await_reply(self._auth.admin.sign_out(session.access_token, "local"))

    async def _session(self, reply: Awaitable[AuthResponse], label: str) -> AuthSession:
        """The session of a reply. Its end is counted by the local clock from the request, not from the answer.

        The machine may sleep between the two.
        """
        requested_at = self._clock.now().timestamp()
        answer = await reply
        if answer.session is None:
            raise CloudUnavailable("the server signed nobody in")
        session = answer.session
        seconds = min(max(session.expires_in, 0), MAX_TOKEN_SECONDS)
        return AuthSession(session.user.id, label, session.access_token, session.refresh_token, requested_at + seconds)

    async def _call_for_contact(self, contact: Contact, call: Awaitable[T]) -> T:
        """Make a call that a user waits for. Its errors name the invalid field and how long to wait."""
        try:
            return await self._await_reply(call)
        except InvalidInput as error:
            raise InvalidInput(error.message, field=contact.kind) from error
        except RateLimited as error:
            wait = "a minute" if error.retry_after is None else f"{error.retry_after:.0f} s"
            hint = f"Wait {wait}, then try again. A code sent before is good until the next one."
            raise RateLimited("too many messages or attempts", hint=hint, retry_after=error.retry_after) from error

    async def _await_reply(self, call: Awaitable[T]) -> T:
        try:
            return await self._http.await_reply(call)
        except AuthError as error:
            if isinstance(error.__cause__, CONNECT_ERRORS):  # the library wraps it
                raise unreachable_error(error, "no connection to the login server") from error
            raise _error_of_auth(error) from error


def check_token(session: AuthSession) -> None:
    """Raise LoginRequired without a token: the request would be anonymous."""
    token = session.access_token
    if not token or not token.isascii() or not token.isprintable():
        raise LoginRequired("the session holds no token")


def _error_of_auth(error: AuthError) -> XiaobaiError:
    """Translate a refusal. Auth's own sentence may contain a number or an address, so it is dropped."""
    status = error.status if isinstance(error, AuthApiError | CustomAuthError) else 0
    code: str | None = error.code
    if code in AUTH_ERRORS:
        kind, message, hint = AUTH_ERRORS[code]
        return kind(message, hint=hint)
    if code in INVALID_CONTACT_CODES:
        return InvalidInput("the login server finds this number or address impossible")
    if code is None and status in CODELESS_REFUSAL_STATUSES:
        return BadCredentials(f"the login was refused ({status})")
    if code is not None and status in REFUSAL_STATUSES:
        return LoginRefused(f"the login was refused ({code})")
    return CloudUnavailable(f"the login server answered {code or status or 'nothing'}")
