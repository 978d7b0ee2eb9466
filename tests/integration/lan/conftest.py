"""What all tests of the local network share."""

from uuid import uuid4

import pytest

from sync.lan.discovery import browser


@pytest.fixture(autouse=True)
def _own_service_type(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tests in other processes hear what is announced here: they would enter codes, and a flood ends discovery."""
    monkeypatch.setattr(browser, "SERVICE_TYPE", f"_xm-{uuid4().hex[:8]}._tcp.local.")
