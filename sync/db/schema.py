"""The tables as SQLAlchemy sees them; `migrations/*.sql` makes them, and a test compares the two."""

from sqlalchemy import Column, Integer, LargeBinary, MetaData, Table, Text

UNKNOWN_OWNER = ""  # `accounts.user_id` if the row that named the owner was damaged

MAX_KEY = 2**53  # no greater number is a key of ours: readers of JSON take it for another one
REPLICA_ID_PREFIX = "rep_"  # how the id of a replica begins
DOCUMENT_LOG_OFFSET = "document"  # the watermark up to which the versions have the log
RECOVERY_STARTED = (
    "document.recovery.begun"  # when versions were lost, in milliseconds; 0 once their lines are known again
)
VERSION_ON_DISK = (
    "document.on_disk"  # the watermark that is a version: the newest that was seen in, or written to, the file
)
NON_KEY_SUFFIXES = (
    ".rules",
    ".order",
    ".begun",
    ".announced",
    ".end",
    ".returned",
    ".model_day",
    ".model_calls",
    ".model_tokens",
)  # the ends of the names of watermarks that are no key, but a number of another kind

metadata = MetaData()

events = Table(
    "events",
    metadata,
    Column("position", Integer, primary_key=True),
    Column("event_id", Text, nullable=False),
    Column("schema_version", Integer, nullable=False),
    Column("project_id", Text, nullable=False),
    Column("project_path", Text),
    Column("session_id", Text, nullable=False),
    Column("ts", Text, nullable=False),
    Column("ts_ms", Integer, nullable=False),
    Column("type", Text, nullable=False),
    Column("payload", Text, nullable=False),
    Column("device_id", Text, nullable=False),
    Column("replica_id", Text, nullable=False),
    Column("replica_seq", Integer, nullable=False),
    Column("hlc", Text, nullable=False),
    Column("origin", Text, nullable=False),
    Column("reach", Text, nullable=False),
    Column("local_date", Text, nullable=False),
    Column("utc_offset", Integer, nullable=False),
    Column("extra", Text, nullable=False),
    Column("server_seq", Integer),
    Column("server_ts", Text),
)

deliveries = Table(
    "deliveries",
    metadata,
    Column("destination", Text, primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("state", Text, nullable=False),
)

delivery_counts = Table(  # kept by triggers
    "delivery_counts",
    metadata,
    Column("destination", Text, primary_key=True),
    Column("state", Text, primary_key=True),
    Column("count", Integer, nullable=False),
)

quarantine = Table(
    "quarantine",
    metadata,
    Column("destination", Text, primary_key=True),
    Column("position", Integer, primary_key=True),
    Column("code", Text, nullable=False),
    Column("message", Text, nullable=False),
    Column("noticed_at", Text, nullable=False),
)

replica = Table(
    "replica",
    metadata,
    Column("one", Integer, primary_key=True),
    Column("replica_id", Text, nullable=False),
    Column("next_seq", Integer, nullable=False),
    Column("hlc", Text),
)

watermarks = Table(
    "watermarks",
    metadata,
    Column("name", Text, primary_key=True),
    Column("position", Integer, nullable=False),
    Column("updated_at", Text, nullable=False),
)

cursors = Table(
    "cursors",
    metadata,
    Column("destination", Text, primary_key=True),
    Column("epoch", Text),
    Column("seq", Integer, nullable=False),
    Column("event_id", Text),
    Column("head", Integer, nullable=False),
    Column("synced_at", Text),
    Column("may_lack", Integer, nullable=False),
)

accounts = Table(
    "accounts",
    metadata,
    Column("one", Integer, primary_key=True),
    Column("user_id", Text, nullable=False),
    Column("label", Text, nullable=False),
    Column("claimed_at", Text, nullable=False),
)

written = Table(
    "written",
    metadata,
    Column("version", Integer, primary_key=True),
    Column("surface", Text, nullable=False),
    Column("label", Text),
    Column("sha256", Text, nullable=False),
    Column("bytes", LargeBinary, nullable=False),
    Column("entry_ids", Text, nullable=False),
    Column("cause", Text, nullable=False),
    Column("created_at", Text, nullable=False),
    Column("base", Integer),  # the version that this one is a difference from; null if it is stored whole
    Column("entries", Integer),
)

captured = Table(
    "captured",
    metadata,
    Column("event_id", Text, primary_key=True),
    Column("question", Text, nullable=False),
    Column("answer", Text, nullable=False),
)


def table_of_watermark(watermark: str) -> Table | None:
    """The table whose key a watermark is; None if it is a number of another kind: of rules, a count, a flag."""
    if watermark.endswith(NON_KEY_SUFFIXES):
        return None
    return written if watermark == VERSION_ON_DISK else events


device_keys = Table(
    "device_keys",
    metadata,
    Column("public_key", Text, primary_key=True),
    Column("device_id", Text, nullable=False),
    Column("first_seen_at", Text, nullable=False),
)

paired_devices = Table(
    "paired_devices",
    metadata,
    Column("public_key", Text, primary_key=True),
    Column("device_id", Text, nullable=False, unique=True),
    Column("name", Text, nullable=False),
    Column("discovery_id", Text, nullable=False),
    Column("paired_at", Text, nullable=False),
)

erased_lines = Table(
    "erased_lines",
    metadata,
    Column("hash", Text, primary_key=True),
    Column("entry_id", Text, primary_key=True),
    Column("first", Integer, primary_key=True),
    Column("last", Integer, nullable=False),
)

erasure_key = Table(
    "erasure_key",
    metadata,
    Column("one", Integer, primary_key=True),
    Column("key", Text, nullable=False),
)

waiting_exchanges = Table(
    "waiting_exchanges",
    metadata,
    Column("event_id", Text, primary_key=True),
    Column("tries", Integer, nullable=False),
)


# Tables of which a damaged database keeps every row that can be read, besides events and versions of the document.
SMALL_TABLES = (
    accounts,
    captured,
    device_keys,
    erased_lines,
    erasure_key,
    paired_devices,
    quarantine,
    replica,
    waiting_exchanges,
    watermarks,
)
KEYED_TABLES = ((events, "position"), (written, "version"))
# What a damaged database loses: it follows from the events, or comes from the server again.
DERIVABLE_TABLES = (cursors, deliveries, delivery_counts)
