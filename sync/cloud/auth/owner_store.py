"""The SQL of the profile's owner: which user this database belongs to."""

from typing import Final, NamedTuple

from sqlalchemy import insert, select

from sync.db.engine import Transaction
from sync.db.schema import accounts

_SELECT_OWNER: Final = select(accounts.c.user_id, accounts.c.label)
_REPLACE_OWNER: Final = insert(accounts).prefix_with("or replace")


class DatabaseOwner(NamedTuple):
    user_id: str
    label: str


def read_owner(connection: Transaction) -> DatabaseOwner | None:
    row = connection.execute(_SELECT_OWNER).first()
    return None if row is None else DatabaseOwner(row.user_id, row.label)


def claim_profile(connection: Transaction, user_id: str, label: str, claimed_at: str) -> None:
    """Make this profile and all its events a user's. One row, so the claim is atomic."""
    values = {"one": 1, "user_id": user_id, "label": label, "claimed_at": claimed_at}
    connection.execute(_REPLACE_OWNER, values)


def claim_guest_profile(connection: Transaction, user_id: str, label: str, claimed_at: str) -> str:
    """The same if the profile has no owner. Return the owner."""
    if (owner := read_owner(connection)) is not None:
        return owner.user_id
    claim_profile(connection, user_id, label, claimed_at)
    return user_id
