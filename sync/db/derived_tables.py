"""The tables that projections make when they are first needed. They may be dropped: the log fills them again.

They are here so that a start can compare the stored schema with them. A new layout needs no migration: it needs another
rules version of its projection. A SQLite without FTS5 lacks only recall.
"""

from typing import Final

# By the prefix of their names, the watermark without which the tables are filled again.
DERIVED_PREFIXES: Final = {"recall_": "recall.rules", "lesson_": "lessons.rules", "context_": ""}

LESSON_TABLES: Final = {
    "lesson_items": """create table lesson_items (
      lesson_id text primary key, kind text not null, identity text not null, source text not null,
      state text not null, shares_term integer not null, sessions text not null, project_ids text not null,
      occurrences integer not null, helped integer not null, hurt integer not null, shown integer not null,
      created_at text not null, last_at text not null, removed integer not null, content text not null
    ) without rowid""",
    "lesson_keys": "create table lesson_keys (key text, lesson_id text, primary key (key, lesson_id)) without rowid",
    "lesson_terms": """create table lesson_terms (
      term text, lesson_id text, primary key (term, lesson_id)) without rowid""",
    "lesson_shown": """create table lesson_shown (
      session_id text, lesson_id text, position integer, primary key (session_id, lesson_id)) without rowid""",
    "lesson_feedback": """create table lesson_feedback (
      event_id text primary key, instinct_id text not null, lesson_id text not null) without rowid""",
    "lesson_calls": """create table lesson_calls (
      position integer primary key, session_id text not null, project_id text not null, tool text not null,
      command text not null, command_key text, file_path text not null, error_key text, error_type text not null,
      message text not null, language text not null)""",
}
LESSON_INDEXES: Final = (
    "create index lesson_by_identity on lesson_items (identity)",
    "create index lesson_shown_by_position on lesson_shown (position)",
    "create index lesson_feedback_by_instinct on lesson_feedback (instinct_id)",
    "create index lesson_calls_by_session on lesson_calls (session_id, position)",
    "create index lesson_calls_by_command on lesson_calls (command_key, position)",
    "create index lesson_calls_by_error on lesson_calls (error_key, position) where error_key is not null",
)
RECALL_TABLES: Final = (
    """create table recall_items (
      id integer primary key, born integer not null, said integer not null, entry_id text, kind text not null,
      project_id text not null, ts_ms integer not null, length integer not null, importance real not null,
      marks text not null, text text not null
    )""",
    "create unique index recall_by_entry on recall_items (entry_id) where entry_id is not null",
    "create index recall_by_birth on recall_items (born) where born <> id",
    "create index recall_by_time on recall_items (ts_ms)",
    """create virtual table recall_words using fts5(
      words, content='', detail=none, columnsize=0, tokenize="ascii tokenchars '_./#+@:-'"
    )""",
    "create table recall_totals (one integer primary key check (one = 1), items integer, length integer)",
    "insert into recall_totals values (1, 0, 0)",
)
VECTOR_TABLES: Final = (
    "create table recall_vectors (item_id integer primary key, dense integer not null, vector blob not null)",
    """create table recall_model (
      one integer primary key check (one = 1), name text not null, through integer not null, removed integer not null
    )""",
    "insert into recall_model values (1, '', 0, abs(random() % 1000000007))",  # differs in every new index
)
UNMERGED_TABLE: Final = "create table recall_unmerged (one)"
CONTEXT_TABLE: Final = (
    "create table context_given (session_id text not null, event_id text not null,"
    " given_ms integer not null, primary key (session_id, event_id)) without rowid"
)
