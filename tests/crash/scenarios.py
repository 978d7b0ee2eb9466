"""What a person does while the process dies under his hands, and what must hold afterwards.

`steps` are those that every run of the scenario passes; the tests see to it that it does.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from tests.crash import accounts, at_home, kept, online
from tests.crash.world import Doomed, World
from tests.sidecar import Sidecar

STARTING: Final = ("migrate", "statement", "commit", "answer")
SAYING: Final = (*STARTING, "mint a replica", "redact", "insert", "deliver")
WRITING: Final = ("version", "watermark", "swap", "temporary file", "fsync", "rename", "exchange", "note on disk")
SENDING: Final = ("register", "snapshot", "send", "apply", "acknowledge", "move the cursor")
EDITING: Final = ("take in an edit", "record an edit", "version", "watermark")
FORGETTING: Final = ("wish", "carry out the wish", "purge", "put a built file", "append to the event files")
LEAVING: Final = ("choose a profile", "leave", "installation", "complete", "change the installation")


@dataclass(frozen=True)
class Scenario:
    name: str
    prepare: Callable[[World], None]
    act: Callable[[World, Doomed], None]
    check: Callable[[World, Sidecar], None]
    steps: tuple[str, ...]
    cloudy: bool = False
    ahead: bool = False
    settings: dict[str, str] = field(default_factory=dict)


def _unique(*groups: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(step for group in groups for step in group))


SCENARIOS: Final = (
    Scenario(
        "first start",
        at_home.nothing,
        at_home.first_words,
        World.check,
        _unique(("installation",), SAYING, WRITING),
    ),
    Scenario("stream of updates", at_home.some_memory, at_home.stream, World.check, _unique(SAYING, WRITING)),
    Scenario("hand edits", at_home.some_memory, at_home.hand_edits, World.check, _unique(STARTING, EDITING)),
    Scenario(
        "update against hand edit", at_home.some_memory, at_home.race, World.check, _unique(SAYING, WRITING, EDITING)
    ),
    Scenario(
        "save, restore, resolve",
        at_home.some_memory,
        at_home.settings_page,
        at_home.check_settings_page,
        _unique(STARTING, WRITING, ("save", "restore", "set aside", "record an edit")),
    ),
    Scenario(
        "the app's cache",
        at_home.an_app_cache,
        at_home.with_the_cache,
        at_home.check_cache,
        _unique(SAYING, WRITING, ("take in the cache", "fill the cache", "note in the cache")),
    ),
    Scenario(
        "a newer program",
        at_home.an_older_database,
        at_home.first_words,
        at_home.check_upgraded,
        _unique(SAYING, WRITING),
        ahead=True,
    ),
    Scenario(
        "salvage",
        at_home.a_damaged_database,
        at_home.first_words,
        at_home.check_salvaged,
        _unique(
            SAYING,
            WRITING,
            ("copy the damaged", "rebuild", "copy rows", "repair", "sync the new", "put in place", "move aside"),
            ("let the log follow", "renumber"),
        ),
    ),
    Scenario(
        "encrypt",
        at_home.a_plain_database_to_encrypt,
        at_home.first_words,
        at_home.check_encrypted,
        _unique(
            SAYING,
            WRITING,
            ("make the key", "set the mark", "copy all rows", "check the converted", "put the converted in place"),
        ),
    ),
    Scenario(
        "decrypt",
        at_home.an_encrypted_database_to_decrypt,
        at_home.first_words,
        at_home.check_decrypted,
        _unique(
            SAYING,
            WRITING,
            ("copy all rows", "check the converted", "put the converted in place", "remove the mark"),
        ),
    ),
    Scenario(
        "retention",
        kept.old_facts,
        kept.archive_and_forget,
        kept.check_archived,
        _unique(
            STARTING,
            FORGETTING,
            ("put the archive", "let the log say what goes", "write an archive anew", "insert", "watermark"),
        ),
    ),
    Scenario(
        "forget",
        kept.words_everywhere,
        kept.forget_them,
        kept.check_forgotten,
        _unique(
            STARTING,
            WRITING,
            FORGETTING,
            ("insert", "forget in what is parked", "note of the pages", "daily page", "temporary file", "rename"),
        ),
    ),
    Scenario(
        "rules that became stricter",
        kept.a_secret_of_older_rules,
        kept.read_again,
        kept.check_corrected,
        _unique(
            STARTING,
            WRITING,
            ("correct", "carry out the wish", "purge", "write an archive anew", "put the archive", "put a built file"),
        ),
    ),
    Scenario(
        "daily",
        kept.a_conversation,
        kept.its_daily_page,
        kept.check_daily_page,
        _unique(
            STARTING,
            ("insert", "watermark", "note of the pages", "daily page", "begin with a page", "took a page in"),
            ("take a page away", "drop the note of a page", "temporary file", "fsync", "rename", "exchange", "unlink"),
            ("append to the event files", "small file"),
        ),
    ),
    Scenario(
        "import",
        kept.an_archive,
        kept.bring_in_and_export,
        kept.check_brought_in,
        _unique(
            SAYING,
            WRITING,
            ("bring in", "put the archive", "append to the event files", "put a built file", "small file"),
        ),
    ),
    Scenario(
        "offline, then online",
        online.said_offline,
        online.come_online,
        online.check_everything,
        _unique(SAYING, WRITING, SENDING),
        cloudy=True,
    ),
    Scenario(
        "hear of another device",
        online.said_elsewhere,
        online.listen,
        online.check_heard,
        _unique(
            STARTING,
            ("register", "send", "apply", "add what others said", "move the cursor"),
            ("keep the list of devices",),
        ),
        cloudy=True,
    ),
    Scenario(
        "first login",
        online.said_as_a_guest,
        online.first_login,
        online.check_everything,
        _unique(SAYING, WRITING, SENDING, ("claim", "save the session", "save the device key")),
        cloudy=True,
    ),
    Scenario(
        "token refresh",
        online.an_expired_token,
        online.come_online,
        online.check_everything,
        _unique(SAYING, WRITING, SENDING, ("refresh", "save the session")),
        cloudy=True,
    ),
    Scenario(
        "account switch",
        accounts.fifty_waiting,
        accounts.switch,
        accounts.check_switched,
        _unique(STARTING, LEAVING, ("claim", "save the session", "hand over", "take the file away", "mint a replica")),
        cloudy=True,
    ),
    Scenario(
        "a guest goes along",
        accounts.a_guest_beside,
        accounts.guest_logs_in,
        accounts.check_went_along,
        _unique(
            STARTING,
            LEAVING,
            ("save the session", "hand over", "put the other document", "carry over", "insert", "remove a profile"),
        ),
        cloudy=True,
    ),
    Scenario(
        "logout with removal",
        accounts.all_sent,
        accounts.log_out,
        accounts.check_removed,
        _unique(
            STARTING,
            ("leave", "installation", "complete", "drop the session", "replace the document", "remove a profile"),
            ("unlink", "change the installation", "mint a replica", "take the file away"),
        ),
        cloudy=True,
    ),
)
BY_NAME: Final = {scenario.name: scenario for scenario in SCENARIOS}
