from pathlib import Path

import pytest

from tests.dialects.yagra.loader import Loader


@pytest.fixture
def loader(tmp_path: Path) -> Loader:
    return Loader(tmp_path)
