from pathlib import Path

import pytest

from tests.dialects.loki.loader import Loader


@pytest.fixture
def loader(tmp_path: Path) -> Loader:
    return Loader(tmp_path)
