"""A fact while statements and answers are applied to it."""

from sync.understanding.model import Fact, FactStatus, RecordedStatement


class FactDraft:
    """A fact so far: its first statement, and what was said since.

    `doubt`: the product of 1 - confidence of its statements. `devices`: whose words it is made of.
    `is_removal_admitted`: other devices may not state anew what was retracted.
    """

    def __init__(self, first: RecordedStatement, status: FactStatus) -> None:
        self.first, self.statement, self.status = first, first.statement, status
        self.origin, self.valid_from, self.valid_until = first.origin, first.recorded_at, first.statement.valid_until
        self.evidence, self.statement_ids, self.devices = [first.event_id], [first.fact_id], {first.device_id}
        self.doubt = 1.0 - first.statement.confidence
        self.is_admitted = self.is_removal_admitted = False
        self.superseded_by: str | None = None
        self.questioned_by: str | None = None
        self.outdated_part: str | None = None

    @property
    def fact(self) -> Fact:
        said = self.statement
        return Fact(
            fact_id=self.first.fact_id,
            kind=said.kind,
            section=said.section,
            subject=self.first.subject,
            statement=said.text,
            slot=said.slot,
            is_negative=said.is_negative,
            valid_from=self.valid_from,
            valid_until=self.valid_until,
            evidence=tuple(self.evidence),
            origin=self.origin,
            confidence=round(1.0 - self.doubt, 3),
            status=self.status,
            superseded_by=self.superseded_by,
            questioned_by=self.questioned_by,
            outdated_part=self.outdated_part,
            statement_ids=tuple(self.statement_ids),
            about=said.about,
            level=said.level,
            importance=said.importance,
        )
