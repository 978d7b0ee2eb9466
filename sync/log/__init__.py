"""The append-only event log, this device's truth; everything else in the program is a view of it.

Glossary
    event       a fact, recorded once, never changed; the envelope of seed 002 plus what replication needs.
    draft       what somebody wants recorded; its payload has passed the redactor.
    delivery    that an event still has to reach a destination; written in the event's own transaction.
    watermark   how far a follower (document, index, …) has read the log.
    cursor      how far we have read a remote log.
    replica     one local database; its events are numbered without gaps.
    position    an event's place in the local log; what `after` and `nextOffset` mean.
"""
