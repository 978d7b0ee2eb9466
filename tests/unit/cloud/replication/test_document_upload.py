"""When the document is sent: not with each exchange, and at once where it matters."""

from hashlib import sha256

import pytest

from sync.cloud.port import SnapshotRow, StoredDocument
from sync.cloud.replication.document_upload import (
    QUIET_SECONDS,
    UPLOAD_INTERVAL,
    DocumentUpload,
    DocumentVersion,
)
from tests.support import REDACTOR, FixedClock


class Source:
    """A document in memory."""

    text = "# 一\n"
    erased = False
    snapshots = 0

    async def version(self) -> DocumentVersion:
        return DocumentVersion(digest(self.text), self.erased)

    async def snapshot(self) -> SnapshotRow:
        self.snapshots += 1
        return SnapshotRow(REDACTOR.clean(self.text), digest(self.text), 1)

    async def mark_stored(self) -> None:
        self.erased = False

    async def import_foreign(self, content: str) -> bool:
        self.text += content
        return True


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


@pytest.fixture
def source() -> Source:
    return Source()


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock()


@pytest.fixture
def upload(source: Source, clock: FixedClock) -> DocumentUpload:
    return DocumentUpload(source, clock)


async def send(upload: DocumentUpload) -> str | None:
    """What a round sends; the server stores it."""
    snapshot = await upload.next_snapshot()
    await upload.on_answer(snapshot, None if snapshot is None else "written")
    return None if snapshot is None else str(snapshot.content)


async def test_it_is_sent_once_it_has_been_quiet(upload: DocumentUpload, source: Source, clock: FixedClock) -> None:
    for number in range(10):
        source.text = f"# {number}\n"
        assert await send(upload) is None
        clock.advance(QUIET_SECONDS - 1)
    assert source.snapshots == 0, "nothing is redacted that is not sent"
    clock.advance(1)
    assert await send(upload) == "# 9\n"
    assert await send(upload) is None


async def test_two_uploads_are_a_quarter_of_an_hour_apart(
    upload: DocumentUpload, source: Source, clock: FixedClock
) -> None:
    upload.at_once = True
    assert await send(upload) == "# 一\n"
    upload.at_once, source.text = False, "# 二\n"
    assert await send(upload) is None
    clock.advance(UPLOAD_INTERVAL - 1)
    assert await send(upload) is None
    clock.advance(1)
    assert await send(upload) == "# 二\n"


async def test_an_erasure_does_not_wait(upload: DocumentUpload, source: Source) -> None:
    upload.at_once = True
    await send(upload)
    upload.at_once, source.text, source.erased = False, "# \n", True
    assert await send(upload) == "# \n"
    assert await send(upload) is None


async def test_an_imported_text_is_replaced_at_once(upload: DocumentUpload) -> None:
    upload.at_once = True
    await send(upload)
    upload.at_once = False
    assert await upload.import_stored(StoredDocument("- 别的\n", digest("- 别的\n"), None))
    snapshot = await upload.next_snapshot()
    assert snapshot is not None
    assert (snapshot.content, snapshot.base_sha256) == ("# 一\n- 别的\n", digest("- 别的\n"))


async def test_what_the_server_refused_is_sent_again_when_it_has_changed(
    upload: DocumentUpload, source: Source
) -> None:
    upload.at_once = True
    snapshot = await upload.next_snapshot()
    assert snapshot is not None
    upload.on_refusal(snapshot, "22023")
    assert await send(upload) is None
    source.text = "# 二\n"
    assert await upload.is_unsent()
    assert await send(upload) == "# 二\n"
    assert not await upload.is_unsent()
