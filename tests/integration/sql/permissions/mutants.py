"""The migrations broken on purpose, one way at a time: what a slip of the pen would do, and why it would matter.

A mutant is SQL that is run after the migrations, or an edit of one function as it is in the database now, so that a
later migration which makes the function again does not leave a stale copy here: an edit whose place is gone fails.
`racy` mutants can only be seen with two transactions at once.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from tests.integration.sql.connections import Connection, Cursor


@dataclass(frozen=True)
class Edit:
    """Replace every `old`, of which there must be one, with `new`."""

    function: str  # with its schema
    old: str
    new: str

    def text(self, cursor: Cursor) -> str:
        found = definition(cursor, self.function)
        assert self.old in found, f"{self.function} no longer says: {self.old}"
        return found.replace(self.old, self.new)


def definition(cursor: Cursor, function: str) -> str:
    cursor.execute("select pg_get_functiondef(%s::regproc)", [function])
    row = cursor.fetchone()
    assert row is not None
    return str(row[0])


@dataclass(frozen=True)
class Mutant:
    name: str
    danger: str
    change: tuple[str | Edit, ...]
    racy: bool = False

    @property
    def about(self) -> str:
        return " ".join(change.function if isinstance(change, Edit) else change for change in self.change)

    def apply(self, cursor: Cursor) -> None:
        for change in self.change:
            cursor.execute((change.text(cursor) if isinstance(change, Edit) else change).encode())

    @contextmanager
    def committed(self, connection: Connection) -> Iterator[None]:
        """For as long as the block lasts. Edits only: what else is changed could not be put back."""
        with connection.transaction(), connection.cursor() as cursor:
            originals = [definition(cursor, edit.function) for edit in self.change if isinstance(edit, Edit)]
            assert len(originals) == len(self.change)
            self.apply(cursor)
        try:
            yield
        finally:
            for original in originals:
                connection.execute(original.encode())


def _private(function: str, old: str, new: str) -> Edit:
    return Edit(f"ai_memory_private.{function}", old, new)


def _public(function: str, old: str, new: str) -> Edit:
    return Edit(f"public.ai_memory_{function}", old, new)


def _policies() -> Iterator[Mutant]:
    for table in ("ai_memory_heads", "ai_memory_devices", "ai_memory_events", "ai_memory"):
        yield Mutant(
            f"the session of a revoked device reads {table}",
            "a policy dropped: the token of a stolen machine goes on reading for an hour",
            (f"drop policy {table}_session on public.{table}",),
        )
        yield Mutant(
            f"everybody reads {table}", "using (true)", (f"alter policy {table}_read on public.{table} using (true)",)
        )
        yield Mutant(
            f"anonymous users read {table}", "a policy dropped", (f"drop policy {table}_named on public.{table}",)
        )
        yield Mutant(
            f"{table} has no row-level security",
            "switched off, it guards nothing",
            (f"alter table public.{table} disable row level security",),
        )
    for table in ("ai_memory_checkpoints", "ai_memory_activity", "ai_memory_legacy", "ai_memory_limits"):
        yield Mutant(
            f"{table} is guarded by its grants alone",
            "the next forgotten revoke would open it",
            (f"alter table public.{table} disable row level security",),
        )


POLICIES: Final = (
    *_policies(),
    Mutant(
        "everybody updates every document",
        "using (true)",
        ("alter policy ai_memory_update on public.ai_memory using (true)",),
    ),
    Mutant(
        "everybody inserts for everybody",
        "with check (true); seen once a grant is too many",
        ("alter policy ai_memory_insert on public.ai_memory with check (true)",),
    ),
    Mutant(
        "documents can be given away",
        "with check (true); seen once the trigger is gone that refuses it as well",
        ("alter policy ai_memory_update on public.ai_memory with check (true)",),
    ),
    Mutant(
        "the trigger lets documents move",
        "a document under another device is nobody's that reads it",
        (_private("tend_document", "is distinct from (old.id, old.user_id, old.device_id)", "is null"),),
    ),
    Mutant(
        "a revoked device writes its first document",
        "a policy dropped",
        ("drop policy ai_memory_revoked_insert on public.ai_memory",),
    ),
    Mutant(
        "a revoked device goes on writing",
        "a policy dropped",
        ("drop policy ai_memory_revoked_update on public.ai_memory",),
    ),
    Mutant(
        "any session writes a device's document",
        "a fresh login rewrites what another device prefers",
        ("drop policy ai_memory_own_update on public.ai_memory",),
    ),
    Mutant(
        "any session writes a device's first document",
        "the same, where there is none yet",
        ("drop policy ai_memory_own_insert on public.ai_memory",),
    ),
    Mutant(
        "the policy against anonymous users is permissive",
        "permissive policies add up: it lets everybody in",
        (
            "drop policy ai_memory_events_named on public.ai_memory_events",
            """create policy ai_memory_events_named on public.ai_memory_events for all to authenticated
            using (coalesce((select auth.jwt() ->> 'is_anonymous')::boolean, false) is false)""",
        ),
    ),
    Mutant(
        "whoever is signed in reads",
        "a convenient policy of somebody who tried something out",
        ("create policy handy on public.ai_memory for select using (auth.role() = 'authenticated')",),
    ),
    Mutant(
        "the owner is asked of user_metadata",
        "people write that into their own profile",
        (
            """create policy handy on public.ai_memory_events for select to authenticated
            using (user_id::text = auth.jwt() -> 'user_metadata' ->> 'user_id')""",
        ),
    ),
)

_GRANTS: Final = {
    "anon may ask for documents": "select on public.ai_memory to anon",
    "anon reads the content of old rows": "select (content) on public.ai_memory_legacy to anon",
    "a new column is everybody's": "select (marks) on public.ai_memory_checkpoints to public",
    "people read old rows": "select on public.ai_memory_legacy to authenticated",
    "people read the list of old rows": "select on public.ai_memory_admin_legacy to authenticated",
    "people count everybody": "select on public.ai_memory_admin_growth to authenticated",
    "people delete documents": "delete on public.ai_memory to authenticated",
    "people say whose document it is": "insert (user_id) on public.ai_memory to authenticated",
    "people give documents away": "update (user_id) on public.ai_memory to authenticated",
    "people say what their replica has written": "update (through_replica_seq) on public.ai_memory to authenticated",
    "people filter everything they ever wrote": "select on public.ai_memory_events to authenticated",
    "people write events past the numbering": "insert on public.ai_memory_events to authenticated",
    "people undo a revocation": "update (revoked_at) on public.ai_memory_devices to authenticated",
    "people empty the log": "truncate on public.ai_memory_events to authenticated",
    "admins edit": "update on public.ai_memory_events to service_role",
    "the anon key syncs": "execute on function public.ai_memory_sync to anon",
    "everybody may call what is new": "execute on function public.ai_memory_report to public",
    "people fold": "execute on function public.ai_memory_admin_checkpoint to authenticated",
    "people prune": "execute on function public.ai_memory_admin_prune to authenticated",
    "people claim old rows": "execute on function public.ai_memory_admin_claim_legacy to authenticated",
    "people erase people": "execute on function public.ai_memory_admin_purge to authenticated",
    "people set their own limits": "execute on function public.ai_memory_admin_set_limit to authenticated",
    "people count old rows up": "usage on sequence public.ai_memory_legacy_legacy_id_seq to authenticated",
    "people enter the private schema": "usage on schema ai_memory_private to authenticated",
    "a partition has a grant": "select on ai_memory_private.ai_memory_events_07 to authenticated",
    "an inner function has a grant": "execute on function ai_memory_private.blank to authenticated",
}
GRANTED: Final = tuple(Mutant(name, "a grant too many", (f"grant {text}",)) for name, text in _GRANTS.items())

_ANYBODY: Final = "a definer function that does not ask whose it is"
DEFINERS: Final = (
    Mutant(
        "a call needs no login",
        "an empty answer stands for a lost login",
        (_private("signed_in_user", "if auth.uid() is null then", "if false then"),),
    ),
    Mutant(
        "anonymous users may call",
        "check dropped",
        (_private("signed_in_user", "(auth.jwt() ->> 'is_anonymous')::boolean", "null"),),
    ),
    Mutant(
        "who calls is asked of user_metadata",
        "people write that into their own profile",
        (
            _private(
                "signed_in_user",
                "return auth.uid();",
                "return coalesce((auth.jwt() -> 'user_metadata' ->> 'user_id')::uuid, auth.uid());",
            ),
        ),
    ),
    Mutant(
        "a definer without a fixed search_path",
        "whoever can make a table or function that it finds first runs as the owner",
        ("alter function public.ai_memory_sync reset search_path",),
    ),
    Mutant(
        "sync with the rights of its caller",
        "it would need the grants that go round it",
        ("alter function public.ai_memory_sync security invoker",),
    ),
    Mutant("any account's device will do", _ANYBODY, (_private("device_of", "user_id = p_user and ", ""),)),
    Mutant(
        "renaming renames everybody's",
        _ANYBODY,
        (_public("rename_device", "user_id = v_device.user_id and ", ""),),
    ),
    Mutant("revoking revokes everybody's", _ANYBODY, (_public("revoke", "user_id = v_user and ", ""),)),
    Mutant("the list lists everybody's", _ANYBODY, (_public("list_devices", "where user_id = v_user", ""),)),
    Mutant("a report is everybody's", _ANYBODY, (_public("report", "user_id = v_user and ", ""),)),
    Mutant("a page holds everybody's rows", _ANYBODY, (_private("pull", "e.user_id = p_head.user_id and ", ""),)),
    Mutant(
        "a page holds everybody's checkpoints",
        _ANYBODY,
        (_private("pull_folded", "user_id = p_user and ", ""),),
    ),
    Mutant("forgetting forgets everybody's rows", _ANYBODY, (_private("blank", "user_id = p_user and ", ""),)),
    Mutant("a folded id is everybody's", _ANYBODY, (_private("folded", " where user_id = p_user", ""),)),
    Mutant("a known id is everybody's", _ANYBODY, (_private("event_rows", "known.user_id = p_user and ", ""),)),
    Mutant(
        "a revoked device syncs", "check dropped", (_private("device_of", "v_device.revoked_at is not null", "false"),)
    ),
    Mutant(
        "a revoked key comes back",
        "check dropped",
        (_private("check_key", "v_holder.revoked_at is not null", "false"),),
    ),
    Mutant(
        "any replica takes a device",
        "check dropped",
        (_private("hold_device", "interval '10 minutes'", "interval '-9 days'"),),
    ),
    Mutant(
        "a takeover is not compared",
        "two clones would take the device from each other for ever",
        (_private("hold_device", "v_device.replica_id = p_takeover and", "p_takeover is not null and"),),
    ),
    Mutant(
        "a takeover needs no proof",
        "whoever has a token of the account reads the replica id and speaks as that device",
        (_private("hold_device", "v_device.replica_id = p_takeover and v_proven", "v_device.replica_id = p_takeover"),),
    ),
    Mutant(
        "any session speaks for a device",
        "the same, without a takeover",
        (_private("hold_device", "(v_mine and v_speaks)", "v_mine"),),
    ),
    Mutant(
        "a session that took a silent device writes its document",
        "it waited a day for that",
        (_public("session_may_write", " and is_own", ""),),
    ),
    Mutant(
        "a key of another account closes a document",
        "the original app of one account fails because of another",
        (_public("session_may_write", "where user_id = auth.uid() and device_id", "where device_id"),),
    ),
    Mutant("a taken id is everybody's", _ANYBODY, (_private("taken_id", "held.user_id = p_user and ", ""),)),
    Mutant(
        "a session of another device waits ten minutes",
        "a stolen token takes every device that sleeps",
        (_private("hold_device", "interval '1 day'", "interval '10 minutes'"),),
    ),
    Mutant(
        "the session of a revoked device calls",
        "check dropped: it registers under another id",
        (_private("is_of_revoked_device", "and d.revoked_at is not null", "and false"),),
    ),
    Mutant(
        "the session of a revoked device is forgotten at its next registration",
        "it makes itself another device's",
        (_private("bind_session", "p_own and not exists", "p_own and exists"),),
    ),
    Mutant(
        "revoking leaves the sessions open",
        "the lost machine refreshes its token for ever",
        (_private("end_sessions", "id::text = any (v_sessions)", "false"),),
    ),
    Mutant(
        "revoking ends everybody's sessions",
        "the others have to log in again",
        (_private("end_sessions", "device_id = p_device_id and is_own", "is_own"),),
    ),
    Mutant(
        "revoking twice moves the date",
        "the first date is the one that counts",
        (_public("revoke", "coalesce(revoked_at, now())", "now() + interval '1 s'"),),
    ),
)

RULES: Final = (
    Mutant(
        "an id is all that is known of an event",
        "a device is told that its words are there, and they are not",
        (_private("push", "if v_taken is not null then", "if false then"),),
    ),
    Mutant(
        "whose event it is is not compared",
        "the same",
        (
            _private(
                "is_same_event", "(p_sent.device_id, p_sent.hlc, p_sent.type) = (p_device_id, p_hlc, p_type)", "true"
            ),
        ),
    ),
    Mutant(
        "what an event says is not compared",
        "the same, of two copies of one device",
        (_private("is_same_event", "p_sent.payload in ('{}', p_payload)", "true"),),
    ),
    Mutant(
        "an erased event is another one",
        "its device would quarantine what was forgotten",
        (_private("is_same_event", "(p_erased or", "(false or"),),
    ),
    Mutant(
        "an event without its payload is another one",
        "what expired there would be quarantined",
        (_private("is_same_event", "in ('{}', p_payload)", "in (p_payload)"),),
    ),
    Mutant(
        "of two events under one id one is dropped",
        "it is acknowledged and not there",
        (_private("check_events", "md5((event - array['replica_id', 'replica_seq'])::text)", "1"),),
    ),
    Mutant(
        "history counts for the day",
        "who moves years of conversations is stopped after the first day",
        (_private("count_activity", "if v_part.is_free then", "if false then"),),
    ),
    Mutant(
        "history is free for ever",
        "a limit that a wrong date passes is none",
        (_private("is_free_history", "limit_of('history_events')", "limit_of('nothing')"),),
    ),
    Mutant(
        "history has no size",
        "the same, by bytes",
        (_private("is_free_history", "limit_of('history_bytes')", "limit_of('nothing')"),),
    ),
    Mutant(
        "everything is history",
        "the same",
        (_private("history_ends", "date_trunc('day', created_at, 'UTC')", "(now() + interval '1 day')"),),
    ),
    Mutant(
        "numbers start again",
        "two events under one number",
        (_private("push", "p_head + row_number()", "row_number()"),),
    ),
    Mutant(
        "a number is burnt for a known event",
        "a hole, which readers take for a loss",
        (_private("push", "p_head + count(stored.seq)", "p_head + count(*)"),),
    ),
    Mutant(
        "a fork passes",
        "two databases continue one history",
        (_private("is_forked", "return exists", "return false and exists"),),
    ),
    Mutant(
        "a fork of folded events passes",
        "the same, a month later",
        (_private("is_forked", ") or exists (", ") or false and exists ("),),
    ),
    Mutant(
        "a folded event is new again",
        "it would be applied twice",
        (_private("event_rows", "(select folded.seq from folded where folded.id = once.id)", "null"),),
    ),
    Mutant(
        "no cursor is ever reset",
        "a restored server would go unnoticed",
        (_private("must_reset", "then true", "then false"),),
    ),
    Mutant(
        "the event at the cursor is not compared",
        "refilled numbers after a restore go unnoticed",
        (_private("must_reset", "p_after_event is distinct from", "null is distinct from null and null ="),),
    ),
    Mutant(
        "when the event at the cursor came is not compared",
        "an event sent again under its old number hides what is new below it",
        (_private("must_reset", "p_after_ts is distinct from", "null is distinct from null and null ="),),
    ),
    Mutant(
        "local events are taken in",
        "they should not have left the device",
        (_private("event_problem", "<> 'cloud'", "= 'x'"),),
    ),
    Mutant("events have no size", "one event fills the project", (_private("event_problem", "> 65536", "> 99999999"),)),
    Mutant(
        "rows have no size",
        "the service role and the SQL editor go past the functions",
        ("alter table public.ai_memory_events drop constraint ai_memory_events_sizes",),
    ),
    Mutant(
        "documents have no size",
        "one document fills the project",
        ("alter table public.ai_memory drop constraint ai_memory_content_size",),
    ),
    Mutant(
        "batches have no size",
        "a call runs into the statement timeout for ever",
        (_private("check_events", "jsonb_array_length(p_events) > 500 or ", ""),),
    ),
    Mutant(
        "a day has no limits",
        "one account fills the project",
        (_private("check_quota", "if v_field is not null then", "if false then"),),
    ),
    Mutant(
        "erased events are not counted",
        "a stolen token erases everything call by call",
        (_private("note_erased", "if p_count > 0 then", "if false then"),),
    ),
    Mutant(
        "a call erases as much as it likes",
        "one cheap call is eight seconds of the database",
        (_private("check_erasures", "if p_count >", "if false and p_count >"),),
    ),
    Mutant(
        "an account has as many devices as it likes",
        "each may hold a document of 1 MiB",
        ("drop trigger ai_memory_device_limits on public.ai_memory_devices",),
    ),
    Mutant(
        "an account has as many documents as it likes",
        "the same",
        ("drop trigger ai_memory_document_limit on public.ai_memory",),
    ),
    Mutant(
        "JSON is as deep as it likes",
        "each function that walks it pays with its stack",
        (_private("event_problem", "'strict $.**{101}'", "'strict $.**{9999}'"),),
    ),
    Mutant(
        "a document is of the year 294000",
        "it leads every list for ever",
        ("drop trigger ai_memory_bound_times on public.ai_memory",),
    ),
    Mutant(
        "a view of old rows runs with its owner's rights",
        "a grant too many would show a user everybody's",
        ("alter view public.ai_memory_admin_legacy reset (security_invoker)",),
    ),
    Mutant(
        "a device that pushes is behind by its own events",
        "admins look for a fault that is none",
        (_public("sync", "if v_level and v_error is null then", "if false then"),),
    ),
    Mutant(
        "a level device is shown behind",
        "the same, until its next poll",
        (_public("sync", "if v_after = v_head.seq and not v_reset then", "if false then"),),
    ),
    Mutant(
        "unread text is written over",
        "what the original app wrote is lost",
        (_private("write_document", "when doc.replica_id is null then", "when false then"),),
    ),
    Mutant(
        "foreign text is not marked",
        "the same: nobody would know",
        ("drop trigger ai_memory_tend_document on public.ai_memory",),
    ),
    Mutant(
        "an older document replaces a newer one",
        "a late answer undoes what came after it",
        (_private("write_document", "else doc.through_replica_seq < excluded.through_replica_seq", "else true"),),
    ),
    Mutant(
        "of two documents under one number the later to arrive wins",
        "a late request brings back what was forgotten",
        (_private("write_document", "then doc.content_sha256 = v_base", "then true"),),
    ),
    Mutant(
        "a document never changes without a new event",
        "what was forgotten stays in it",
        (_private("write_document", "then doc.content_sha256 = v_base", "then false"),),
    ),
    Mutant(
        "our own text is marked as foreign",
        "it would be taken in again, forgotten lines and all",
        (_private("tend_document", "and new.content_sha256 is not distinct from old.content_sha256", ""),),
    ),
    Mutant(
        "a wish to forget is stored and not obeyed",
        "made offline, it would never happen",
        (_private("forgotten_in", "'payload_forgotten'", "'nothing'"),),
    ),
    Mutant(
        "folded events are not forgotten",
        "half a promise",
        (_private("blank", "and not event ? 'forgotten_at'", "and false"),),
    ),
    Mutant(
        "the floor passes a device",
        "what it has not seen may be gone",
        (_public("admin_checkpoint", "coalesce(v_slowest.cursor_seq, v_head.seq)", "v_head.seq"),),
    ),
    Mutant(
        "what no checkpoint holds is pruned",
        "deleted for good",
        (_public("admin_prune", "exists (", "true or exists ("),),
    ),
    Mutant(
        "erasing leaves the device open",
        "it would push its copy again",
        (_public("admin_purge", "coalesce(revoked_at, now())", "null"),),
    ),
    Mutant("erasing erases everybody", _ANYBODY, (_public("admin_purge", "user_id = p_user and seq in", "seq in"),)),
    Mutant(
        "an unconfirmed number names an account",
        "who types in a stranger's number is given his memory",
        (_private("account_of", "and u.phone_confirmed_at is not null", ""),),
    ),
    Mutant(
        "a claim writes over a document",
        "the account's own text is lost",
        (
            _private(
                "place_legacy",
                "on conflict (user_id, device_id) do nothing",
                "on conflict (user_id, device_id) do update set content = excluded.content",
            ),
        ),
    ),
    Mutant(
        "everybody hears everybody's pokes",
        "a policy dropped; seen once somebody else's policy lets in too many",
        ("drop policy ai_memory_only_own on realtime.messages",),
    ),
    Mutant(
        "people poke each other",
        "the same, for sending",
        ("drop policy ai_memory_nobody_sends on realtime.messages",),
    ),
    Mutant(
        "the anon key pokes",
        "the same, for everybody who has the app",
        ("drop policy ai_memory_not_anon on realtime.messages",),
    ),
    Mutant(
        "nobody hears a poke",
        "devices wait for the next poll",
        ("drop trigger ai_memory_heads_poke on public.ai_memory_heads",),
    ),
    Mutant(
        "an account leaves its log behind",
        "deleted is not gone",
        (
            "alter table public.ai_memory_devices drop constraint ai_memory_devices_user_id_fkey",
            "alter table public.ai_memory_checkpoints drop constraint ai_memory_checkpoints_user_id_fkey",
        ),
    ),
    Mutant(
        "a view shows content",
        "admins count, they do not read",
        (
            """create or replace view public.ai_memory_admin_legacy as
            select legacy_id, id, device_id, user_id, octet_length(content) as content_bytes, created_at, updated_at,
                kept_because, moved_at, claimed_by, content
            from public.ai_memory_legacy""",
        ),
    ),
)

_UNLOCKED: Final = "head_of(v_user, p_lock => false)"
RACY: Final = (
    Mutant(
        "numbers are given without the lock",
        "a reader passes an event that commits later",
        (_private("head_of", "where user_id = p_user for update;", "where user_id = p_user;"),),
        racy=True,
    ),
    Mutant(
        "the lock is left to the next one",
        "the same at the other end",
        (_public("sync", "p_lock => v_error is null and v_events <> '[]'", "p_lock => false"),),
        racy=True,
    ),
    Mutant(
        "registering takes no lock",
        "a key passes its own revoking",
        (_public("register_device", "head_of(v_user, p_lock => true)", _UNLOCKED),),
        racy=True,
    ),
    Mutant(
        "new devices are counted without the lock",
        "one more than the limit, beside another",
        (
            _private("check_device_limits", "perform ai_memory_private.head_of(new.user_id, p_lock => true);", ""),
            _private("check_document_limit", "perform ai_memory_private.head_of(new.user_id, p_lock => true);", ""),
        ),
        racy=True,
    ),
    Mutant(
        "forgetting takes no lock",
        "an event is packed while it is being blanked, and stays",
        (_public("forget", "head_of(v_device.user_id, p_lock => true)", "head_of(v_device.user_id, p_lock => false)"),),
        racy=True,
    ),
)

MUTANTS: Final = (*POLICIES, *GRANTED, *DEFINERS, *RULES, *RACY)
