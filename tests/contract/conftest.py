"""The worlds in which each contract of the cloud holds."""

from collections.abc import AsyncIterator

import pytest

from sync.clock import SystemClock
from sync.cloud.late import LateCloud
from tests.contract.cloud_worlds import MemoryWorld, SupabaseWorld, World, supabase_cloud


@pytest.fixture(params=["memory", "supabase", "late"])
async def world(request: pytest.FixtureRequest) -> AsyncIterator[World]:
    if request.param == "memory":
        yield MemoryWorld()
        return
    local = request.getfixturevalue("local_cloud")
    cloud = (
        supabase_cloud(local)
        if request.param == "supabase"
        else LateCloud(local.url, local.publishable_key, timeout=20.0, clock=SystemClock())
    )
    yield SupabaseWorld(local, cloud)
    await cloud.close()
