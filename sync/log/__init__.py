"""The append-only event log of one profile. Everything else in the program is derived from it.

An event is a fact, recorded once (`model.Event`); a draft is one before it has a place in the log. Its position is that
place. An outbox delivery says that an event must still reach a destination; the cursor says how far the remote log was
read. A replica is one local database: its events are numbered without gaps. See `docs/events.md` for all event types.
"""
