"""Times as a caller may write them."""

from datetime import datetime

from sync.clock import Clock, milliseconds
from sync.errors import InvalidInput
from sync.log.envelope import instant


def moment_ms(text: str | None, field: str, clock: Clock) -> int | None:
    """A time with its zone, or a day: its beginning here; in Unix milliseconds. Raises InvalidInput."""
    if text is None:
        return None
    try:
        try:
            day = clock.local(datetime.strptime(text, "%Y-%m-%d"))  # noqa: DTZ007 - the zone is the clock's
        except ValueError:
            day = instant(text, field=field)
        return milliseconds(day)
    except OverflowError as error:
        raise InvalidInput(f"{field} is out of the calendar", field=field) from error
