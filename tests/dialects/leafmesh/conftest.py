from pathlib import Path

import pytest

from tests.dialects.leafmesh.opener import Opener


@pytest.fixture
def opener(tmp_path: Path) -> Opener:
    return Opener(tmp_path)
