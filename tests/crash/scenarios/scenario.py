"""A scenario: actions during which the process dies, and the checks afterwards.

Every run of a scenario passes its `steps`; the tests check that.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from tests.crash.environment import CrashEnvironment, CrashingSidecar
from tests.crash.scenarios import accounts, erasure_and_archives, notes, with_cloud, without_cloud
from tests.sidecar import Sidecar

STARTING: Final = ("migrate", "statement", "commit", "answer")
SAYING: Final = (*STARTING, "mint a replica", "redact", "insert", "deliver")
WRITING: Final = ("version", "watermark", "swap", "temporary file", "fsync", "rename", "exchange", "note on disk")
SENDING: Final = ("register", "snapshot", "send", "apply", "acknowledge", "move the cursor")
EDITING: Final = ("take in an edit", "record an edit", "version", "watermark")
FORGETTING: Final = ("wish", "carry out the wish", "purge", "put a built file", "append to the event files")
NOTE_WRITING: Final = (
    *("temporary file", "put a note", "take a note away", "record a note"),
    *("keep the hashes of a write", "drop the hashes of a write"),
)
LEAVING: Final = ("choose a profile", "leave", "installation", "complete", "change the installation")


@dataclass(frozen=True)
class Scenario:
    name: str
    prepare: Callable[[CrashEnvironment], None]
    act: Callable[[CrashEnvironment, CrashingSidecar], None]
    check: Callable[[CrashEnvironment, Sidecar], None]
    steps: tuple[str, ...]
    needs_cloud: bool = False
    newer_schema: bool = False
    settings: dict[str, str] = field(default_factory=dict)


def _unique(*groups: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(step for group in groups for step in group))


SCENARIOS: Final = (
    Scenario(
        "first start",
        without_cloud.prepare_nothing,
        without_cloud.send_first_updates,
        CrashEnvironment.check,
        _unique(("installation",), SAYING, WRITING),
    ),
    Scenario(
        "stream of updates",
        without_cloud.prepare_some_memory,
        without_cloud.stream_updates,
        CrashEnvironment.check,
        _unique(SAYING, WRITING),
    ),
    Scenario(
        "notes",
        notes.prepare_project,
        notes.write_notes,
        notes.check_notes,
        _unique(STARTING, ("insert", "exchange"), NOTE_WRITING),
    ),
    Scenario(
        "forget a note",
        notes.prepare_note_to_erase,
        notes.erase_note,
        notes.check_note_erased,
        _unique(
            STARTING,
            FORGETTING,
            NOTE_WRITING,
            ("unlink", "exchange", "insert"),
        ),
    ),
    Scenario(
        "hand edits",
        without_cloud.prepare_some_memory,
        without_cloud.manual_edits,
        CrashEnvironment.check,
        _unique(STARTING, EDITING),
    ),
    Scenario(
        "update against hand edit",
        without_cloud.prepare_some_memory,
        without_cloud.race_updates_and_edits,
        CrashEnvironment.check,
        _unique(SAYING, WRITING, EDITING),
    ),
    Scenario(
        "save, restore, resolve",
        without_cloud.prepare_some_memory,
        without_cloud.save_settings_page,
        without_cloud.check_settings_page,
        _unique(STARTING, WRITING, ("save", "restore", "set aside", "record an edit")),
    ),
    Scenario(
        "the app's cache",
        without_cloud.prepare_app_cache,
        without_cloud.update_with_app_cache,
        without_cloud.check_cache,
        _unique(SAYING, WRITING, ("take in the cache", "fill the cache", "note in the cache")),
    ),
    Scenario(
        "a newer program",
        without_cloud.prepare_older_database,
        without_cloud.send_first_updates,
        without_cloud.check_upgraded,
        _unique(SAYING, WRITING),
        newer_schema=True,
    ),
    Scenario(
        "salvage",
        without_cloud.prepare_corrupt_database,
        without_cloud.send_first_updates,
        without_cloud.check_salvaged,
        _unique(
            SAYING,
            WRITING,
            (
                "copy the damaged",
                "rebuild",
                "copy rows",
                "complete the log",
                "sync the new",
                "put in place",
                "move aside",
            ),
            ("let the log follow", "renumber"),
        ),
    ),
    Scenario(
        "encrypt",
        without_cloud.prepare_encryption,
        without_cloud.send_first_updates,
        without_cloud.check_encrypted,
        _unique(
            SAYING,
            WRITING,
            ("make the key", "set the mark", "copy all rows", "check the converted", "put the converted in place"),
        ),
    ),
    Scenario(
        "decrypt",
        without_cloud.prepare_decryption,
        without_cloud.send_first_updates,
        without_cloud.check_decrypted,
        _unique(
            SAYING,
            WRITING,
            ("copy all rows", "check the converted", "put the converted in place", "remove the mark"),
        ),
    ),
    Scenario(
        "retention",
        erasure_and_archives.prepare_old_facts,
        erasure_and_archives.apply_retention,
        erasure_and_archives.check_archived,
        _unique(
            STARTING,
            FORGETTING,
            ("put the archive", "let the log say what goes", "write an archive anew", "insert", "watermark"),
        ),
    ),
    Scenario(
        "forget",
        erasure_and_archives.prepare_words_everywhere,
        erasure_and_archives.erase_words,
        erasure_and_archives.check_erased,
        _unique(
            STARTING,
            WRITING,
            FORGETTING,
            ("insert", "forget in what is parked", "note of the pages", "daily page", "temporary file", "rename"),
        ),
    ),
    Scenario(
        "rules that became stricter",
        erasure_and_archives.prepare_unredacted_secret,
        erasure_and_archives.rescan_and_wait,
        erasure_and_archives.check_corrected,
        _unique(
            STARTING,
            WRITING,
            ("correct", "carry out the wish", "purge", "write an archive anew", "put the archive", "put a built file"),
        ),
    ),
    Scenario(
        "daily",
        erasure_and_archives.prepare_conversation,
        erasure_and_archives.change_daily_page,
        erasure_and_archives.check_daily_page,
        _unique(
            STARTING,
            ("insert", "watermark", "note of the pages", "daily page", "begin with a page", "took a page in"),
            ("take a page away", "drop the note of a page", "temporary file", "fsync", "rename", "exchange", "unlink"),
            ("append to the event files", "small file"),
        ),
    ),
    Scenario(
        "import",
        erasure_and_archives.prepare_archive,
        erasure_and_archives.import_and_export,
        erasure_and_archives.check_imported,
        _unique(
            SAYING,
            WRITING,
            ("bring in", "put the archive", "append to the event files", "put a built file", "small file"),
        ),
    ),
    Scenario(
        "offline, then online",
        with_cloud.prepare_offline_updates,
        with_cloud.go_online,
        with_cloud.check_everything,
        _unique(SAYING, WRITING, SENDING),
        needs_cloud=True,
    ),
    Scenario(
        "hear of another device",
        with_cloud.prepare_other_device_updates,
        with_cloud.pull_events,
        with_cloud.check_pulled,
        _unique(
            STARTING,
            ("register", "send", "apply", "add what others said", "move the cursor"),
            ("keep the list of devices",),
        ),
        needs_cloud=True,
    ),
    Scenario(
        "first login",
        with_cloud.prepare_guest_updates,
        with_cloud.first_login,
        with_cloud.check_everything,
        _unique(SAYING, WRITING, SENDING, ("claim", "save the session", "save the device key")),
        needs_cloud=True,
    ),
    Scenario(
        "token refresh",
        with_cloud.prepare_expired_token,
        with_cloud.go_online,
        with_cloud.check_everything,
        _unique(SAYING, WRITING, SENDING, ("refresh", "save the session")),
        needs_cloud=True,
    ),
    Scenario(
        "account switch",
        accounts.prepare_fifty_unsent,
        accounts.switch_account,
        accounts.check_switched,
        _unique(STARTING, LEAVING, ("claim", "save the session", "hand over", "take the file away", "mint a replica")),
        needs_cloud=True,
    ),
    Scenario(
        "a guest goes along",
        accounts.prepare_guest,
        accounts.guest_logs_in,
        accounts.check_guest_events_moved,
        _unique(
            STARTING,
            LEAVING,
            ("save the session", "hand over", "put the other document", "carry over", "insert", "remove a profile"),
        ),
        needs_cloud=True,
    ),
    Scenario(
        "logout with removal",
        accounts.prepare_all_sent,
        accounts.log_out,
        accounts.check_removed,
        _unique(
            STARTING,
            ("leave", "installation", "complete", "drop the session", "replace the document", "remove a profile"),
            ("unlink", "change the installation", "mint a replica", "take the file away"),
        ),
        needs_cloud=True,
    ),
)
BY_NAME: Final = {scenario.name: scenario for scenario in SCENARIOS}
