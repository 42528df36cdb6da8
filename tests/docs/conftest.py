import pytest

from harness.secrets import environment


@pytest.fixture(autouse=True)
def _own_secrets() -> None:
    """Forget the variables that earlier tests in this process set: commands warn of weak values."""
    environment._variables_of_process.cache_clear()
