"""Fixtures of the local cloud, which is a process of its own, one per xdist worker.

Tests share it; each creates its own users. A test that stops the API uses `LocalCloud` itself; one that disturbs the
network puts a `FaultProxy` before `local_cloud`.
"""

import json
import select
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, NamedTuple
from uuid import uuid4

import httpx
import pytest

from tests.cloud.prerequisites import LocalCloudError

READY_WITHIN = 180.0  # seconds; 1.1 s is usual, but the very first start makes a template
STOPPED_WITHIN = 60.0
REPOSITORY = Path(__file__).parents[2]


@dataclass(frozen=True)
class Cloud:
    """The output of `python -m tests.cloud`."""

    url: str
    publishable_key: str
    secret_key: str
    jwt_secret: str
    database_url: str
    """A DSN of the superuser, for psycopg."""
    pids: tuple[int, ...] = ()

    @property
    def port(self) -> int:
        return int(self.url.rpartition(":")[2])

    def sign_up(self, email: str, password: str) -> str:
        """The id of a new user."""
        answer = _http().post(
            f"{self.url}/auth/v1/signup",
            json={"email": email, "password": password},
            headers={"apikey": self.publishable_key},
        )
        if answer.status_code != httpx.codes.OK:
            raise LocalCloudError(f"sign-up of {email} failed: {answer.status_code} {answer.text}")
        return str(answer.json()["user"]["id"])

    def reload_schema(self) -> None:
        """Make the API see DDL at once; by itself it would notice a moment later."""
        _http().post(f"{self.url}/_local/reload").raise_for_status()

    def code_sent_to(self, receiver: str) -> str:
        """The last code sent to this phone or address."""
        answer = _http().get(f"{self.url}/_local/codes/{receiver}")
        return str(answer.raise_for_status().json()["code"])

    def age_code(self, receiver: str, seconds: float) -> None:
        """Make the last message to this phone or address older."""
        aged = _http().post(f"{self.url}/_local/codes/{receiver}/age?seconds={seconds}")
        aged.raise_for_status()


class User(NamedTuple):
    email: str
    password: str
    user_id: str


@pytest.fixture(scope="session")
def local_cloud() -> Iterator[Cloud]:
    """A local Supabase on a real PostgreSQL, with the migrations of this repository."""
    with running_cloud() as cloud:
        yield cloud


@contextmanager
def running_cloud(*arguments: str) -> Iterator[Cloud]:
    """A local Supabase for one test; `arguments` are those of `python -m tests.cloud`."""
    with tempfile.TemporaryFile("w+") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.cloud", *arguments],
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            yield _read(process.stdout, errors)
        finally:
            process.stdin.close()
            try:
                process.wait(STOPPED_WITHIN)
            finally:
                process.kill()
                process.stdout.close()


@pytest.fixture
def new_user(local_cloud: Cloud) -> Callable[[], User]:
    """Create a new user at each call."""

    def sign_up() -> User:
        email, password = f"{uuid4().hex}@example.com", uuid4().hex
        return User(email, password, local_cloud.sign_up(email, password))

    return sign_up


def wait_until(condition: Callable[[], bool], *, timeout: float = 60.0) -> None:
    """Wait for the effect of another process; fail if it does not come."""
    deadline = time.monotonic() + timeout
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.02)


@cache
def _http() -> httpx.Client:
    """One client for all tests: creating one reads the trust store."""
    return httpx.Client(trust_env=False, limits=httpx.Limits(max_keepalive_connections=0))


def _read(stdout: IO[bytes], errors: IO[str]) -> Cloud:
    ready, _, _ = select.select([stdout], [], [], READY_WITHIN)
    line = stdout.readline() if ready else b""
    if not line:
        errors.seek(0)
        pytest.fail(f"the local cloud did not start (does `make setup` help?):\n{errors.read()[-4000:]}", pytrace=False)
    told = json.loads(line)
    return Cloud(**{**told, "pids": tuple(told["pids"])})
