"""Times and projects as a caller may write them."""

from datetime import date, datetime, timedelta
from typing import Final

from sync.clock import Clock, to_unix_ms
from sync.errors import InvalidInput
from sync.log.envelope import parse_timestamp
from sync.log.model import project_id_for

LAST_DAY: Final = date.max.isoformat()  # nothing follows it


def since_ms(text: str | None, clock: Clock) -> int | None:
    """A time with its zone, or the beginning of a day here; in Unix milliseconds. Raises InvalidInput."""
    return _instant_ms(text, "since", clock, timedelta(0))


def until_ms(text: str | None, clock: Clock) -> int | None:
    """The first millisecond that is too late: that of a time with its zone, or of what follows a day here."""
    return None if text == LAST_DAY else _instant_ms(text, "until", clock, timedelta(1))


def _instant_ms(text: str | None, field: str, clock: Clock, day_offset: timedelta) -> int | None:
    if text is None:
        return None
    try:
        try:
            moment = clock.local(datetime.strptime(text, "%Y-%m-%d") + day_offset)  # noqa: DTZ007 - the zone is the clock's
        except ValueError:
            if "T" not in text and ":" not in text:  # no time was meant
                form = "write it as 2026-02-02, or a time as 2026-02-02T10:00:00.000Z"
                raise InvalidInput(f"{field} is no day of the calendar: {form}", field=field) from None
            moment = parse_timestamp(text, field=field)
        return to_unix_ms(moment)
    except OverflowError as error:
        raise InvalidInput(f"{field} is out of the calendar", field=field) from error


def resolve_project_id(project: str | None) -> str | None:
    """An id unchanged, or the id that belongs to a path."""
    is_path = project is not None and ("/" in project or "\\" in project)
    return project_id_for(project) if is_path else project
