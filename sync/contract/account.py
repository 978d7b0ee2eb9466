"""Answers about the account, and how they become JSON."""

from typing import TypedDict

from sync.cloud.auth_port import RESEND_SECONDS, AccountJson
from sync.cloud.contact import Contact


class AuthJson(TypedDict):
    account: AccountJson


class CodeSentJson(TypedDict):
    """`contact` masked, for a person to check; a second code is not sent before `resendAfterSeconds` are over."""

    contact: str
    resendAfterSeconds: int


def code_sent_to_json(contact: Contact) -> CodeSentJson:
    return {"contact": contact.masked, "resendAfterSeconds": int(RESEND_SECONDS)}
