"""Who and what the acceptance tests have in common: people with an account, their rows, a network to take away."""

from collections.abc import Callable, Iterator

import pytest

from tests.acceptance.environment import Network, ServerRows
from tests.cloud.fixtures import Cloud, User


@pytest.fixture
def user(new_user: Callable[[], User]) -> User:
    return new_user()


@pytest.fixture
def ann(new_user: Callable[[], User]) -> User:
    return new_user()


@pytest.fixture
def ben(new_user: Callable[[], User]) -> User:
    return new_user()


@pytest.fixture
def server(local_cloud: Cloud, user: User) -> ServerRows:
    """What lies on the server of `user`."""
    return ServerRows(local_cloud, user.user_id)


@pytest.fixture
def network(local_cloud: Cloud) -> Iterator[Network]:
    with Network(local_cloud) as opened:
        yield opened
