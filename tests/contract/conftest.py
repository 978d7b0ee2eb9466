"""The worlds in which each contract of the cloud holds."""

from collections.abc import AsyncIterator

import pytest

from sync.clock import SystemClock
from sync.cloud.supabase.lazy import LazyCloud
from tests.contract.cloud_backends import CloudBackend, FakeBackend, SupabaseBackend, supabase_cloud


@pytest.fixture(params=["memory", "supabase", pytest.param("late", marks=pytest.mark.proof)])
async def backend(request: pytest.FixtureRequest) -> AsyncIterator[CloudBackend]:
    if request.param == "memory":
        yield FakeBackend()
        return
    local = request.getfixturevalue("local_cloud")
    cloud = (
        supabase_cloud(local)
        if request.param == "supabase"
        else LazyCloud(local.url, local.publishable_key, timeout=20.0, clock=SystemClock())
    )
    yield SupabaseBackend(local, cloud)
    await cloud.close()
