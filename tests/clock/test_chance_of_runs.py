"""Ids and random numbers that the code of a run draws: they come from its seed, and belong to it alone."""

import random
import secrets
import sys
import uuid
from pathlib import Path
from typing import Any

import pytest

from tests.clock.test_time_of_runs import Run, read, run

__all__ = ["run"]

DRAW = "import uuid\nreturn {'id': str(uuid.uuid4())}"


def drawn(run: Run, body: str = DRAW, **keys: Any) -> Any:
    return read(run(body, **keys))


def test_a_run_draws_the_same_again(run: Run) -> None:
    assert drawn(run) == drawn(run)


def test_another_seed_draws_something_else(run: Run) -> None:
    assert drawn(run, seed=1) != drawn(run, seed=2)


def test_two_scenarios_with_one_seed_never_draw_the_same(run: Run) -> None:
    assert drawn(run, name="one") != drawn(run, name="other")


def test_a_run_that_draws_may_differ_from_its_repeats(run: Run) -> None:
    assert run(DRAW).varies
    assert not run("return {}", name="other").varies


def test_drawing_more_in_a_library_changes_no_id_of_the_user(run: Run, tmp_path: Path) -> None:
    library = tmp_path / "site-packages"
    library.mkdir()
    text = (
        "import random, uuid\ndef work(n):\n    return [(uuid.uuid4(), random.random()) for _ in range(n)]\n"
    )
    (library / "noisy_library.py").write_text(text, encoding="utf-8")
    body = f"""
import random, sys, uuid
sys.path.insert(0, {str(library)!r})
import noisy_library
noisy_library.work(NUMBER)
return {{"id": str(uuid.uuid4()), "number": random.random()}}
"""
    first, second = (drawn(run, body.replace("NUMBER", number)) for number in ("0", "3"))
    assert first == second
    sys.modules.pop("noisy_library", None)


def test_a_model_draws_for_the_code_that_makes_it(run: Run, tmp_path: Path) -> None:
    library = tmp_path / "site-packages"
    library.mkdir()
    text = "import pydantic, uuid\nclass Message(pydantic.BaseModel):\n"
    text += "    id: uuid.UUID = pydantic.Field(default_factory=uuid.uuid4)\ndef work(n):\n"
    text += "    return [Message() for _ in range(n)]\n"
    (library / "noisy_models.py").write_text(text, encoding="utf-8")
    body = f"""
import sys, pydantic, uuid
sys.path.insert(0, {str(library)!r})
import noisy_models
class Order(pydantic.BaseModel):
    id: uuid.UUID = pydantic.Field(default_factory=uuid.uuid4)
noisy_models.work(NUMBER)
return {{"id": str(Order().id)}}
"""
    first, second = (drawn(run, body.replace("NUMBER", number)) for number in ("0", "3"))
    assert first == second
    sys.modules.pop("noisy_models", None)


def test_a_generator_that_code_seeds_gives_what_that_seed_gives(run: Run) -> None:
    expected = random.Random(7).random()
    assert drawn(run, "import random\nrandom.seed(7)\nreturn {'n': random.random()}") == {"n": expected}


SHARED = "import numpy as np\nSEED\nreturn {'n': float(np.random.mtrand._rand.random())}"


def test_the_generator_that_users_of_numpy_share_is_seeded(run: Run) -> None:
    import numpy as np

    before = repr(np.random.get_state())
    body = SHARED.replace("SEED", "")
    first = run(body)
    np.random.seed(5)  # as another process would differ
    assert read(run(body)) == read(first)
    assert first.varies
    assert drawn(run, body, seed=1) != read(first)
    assert not run("import numpy\nreturn {}", name="other").varies
    expected = np.random.RandomState(7).random()
    assert drawn(run, SHARED.replace("SEED", "np.random.seed(7)")) == {"n": expected}
    np.random.seed(5)
    after = repr(np.random.get_state())
    drawn(run, body)
    assert repr(np.random.get_state()) == after != before


def test_what_a_module_draws_while_it_is_imported_depends_on_its_name_alone(run: Run, tmp_path: Path) -> None:
    (tmp_path / "drawing_module.py").write_text("import uuid\nID = str(uuid.uuid4())\n", encoding="utf-8")
    head, body = "import drawing_module", "return {'id': drawing_module.ID}"
    found = []
    for name in ("one", "other"):
        sys.modules.pop("drawing_module", None)
        found.append(drawn(run, body, name=name, head=head))
    sys.modules.pop("drawing_module", None)
    assert found[0] == found[1]


@pytest.mark.parametrize("version", [1, 4])
def test_ids_are_of_their_version_and_not_of_this_machine(run: Run, version: int) -> None:
    body = f"import uuid\nreturn {{'id': str(uuid.uuid{version}())}}"
    made = uuid.UUID(drawn(run, body)["id"])
    assert made.version == version
    assert made.node != uuid.getnode()


def test_ids_that_are_sorted_by_time_are(run: Run) -> None:
    body = """
import asyncio
from langchain_core.utils.uuid import uuid7
ids = []
for _ in range(20):
    ids.append(str(uuid7()))
    await asyncio.sleep(0.5)
return {"ids": ids}
"""
    ids = drawn(run, body)["ids"]
    assert sorted(ids) == ids
    assert {uuid.UUID(each).version for each in ids} == {7}
    assert drawn(run, body)["ids"] == ids


def test_chance_is_real_again_after_a_run(run: Run) -> None:
    drawn(run)
    assert secrets.token_hex() != secrets.token_hex()
    before = random.randbytes(8)
    drawn(run)
    assert random.randbytes(8) != before
