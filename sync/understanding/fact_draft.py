"""A fact while statements and answers are applied to it."""

from dataclasses import dataclass

from sync.understanding.model import Fact, FactOrigin, FactStatus, RecordedStatement, Statement


@dataclass(slots=True)
class FactDraft:
    """A fact so far.

    `devices`: whose words it is made of. `is_removal_admitted`: other devices may not state anew what was retracted.
    """

    first: RecordedStatement
    statement: Statement
    origin: FactOrigin
    status: FactStatus
    valid_from: str
    evidence: list[str]
    statement_ids: list[str]
    doubt: float  # the product of 1 - confidence of its statements
    devices: set[str]
    is_admitted: bool = False
    is_removal_admitted: bool = False
    valid_until: str | None = None
    superseded_by: str | None = None
    questioned_by: str | None = None
    outdated_part: str | None = None

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
