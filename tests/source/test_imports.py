"""Import of objects by dotted path, from the folders of independent suites."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.source.imports import ImportProblem, import_object

LOCAL_PRICES = "LITELLM_LOCAL_MODEL_COST_MAP"


@pytest.fixture(autouse=True)
def _modules_as_before() -> Iterator[None]:
    modules, path = dict(sys.modules), list(sys.path)
    yield
    assert sys.path == path
    sys.modules.clear()
    sys.modules.update(modules)


def suite(folder: Path, **modules: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for name, source in modules.items():
        (folder / f"{name}.py").write_text(source)
    return folder


def problem(dotted: str, *folders: Path) -> ImportProblem:
    with pytest.raises(ImportProblem) as caught:
        import_object(dotted, folders)
    return caught.value


def test_installed_modules_are_found_without_folders() -> None:
    assert import_object("json.loads") is json.loads
    assert import_object("collections.abc.Mapping.get").__name__ == "get"


def test_a_folder_is_searched_and_sys_path_is_restored(tmp_path: Path) -> None:
    folder = suite(tmp_path, seeds="class Seed:\n    class Packet: pass\n")
    assert import_object("seeds.Seed.Packet", [folder]).__name__ == "Packet"
    assert str(folder) not in sys.path


def test_packages_and_their_submodules_are_found(tmp_path: Path) -> None:
    suite(tmp_path / "garden", __init__="from garden.beds import count\n", beds="count = 3\n")
    suite(tmp_path / "garden" / "shed", tools="rake = 'rake'\n")
    assert import_object("garden.count", [tmp_path]) == 3
    assert import_object("garden.beds.count", [tmp_path]) == 3
    assert import_object("garden.shed.tools.rake", [tmp_path]) == "rake"


def test_a_module_is_imported_once_for_a_folder_so_classes_stay_the_same(tmp_path: Path) -> None:
    folder = suite(tmp_path, seeds="class Seed: pass\n")
    assert import_object("seeds.Seed", [folder]) is import_object("seeds.Seed", [folder])


def test_two_suites_may_have_modules_of_the_same_name(tmp_path: Path) -> None:
    source = "import helpers\nclass Tool: pass\ndef who(): return helpers.name\n"
    one = suite(tmp_path / "one", tools=source, helpers="name = 'one'")
    two = suite(tmp_path / "two", tools=source, helpers="name = 'two'")
    first = import_object("tools.Tool", [one])
    second = import_object("tools.Tool", [two])
    assert first is not second
    assert import_object("tools.Tool", [one]) is first
    assert import_object("tools.Tool", [two]) is second
    assert import_object("tools.who", [one])() == "one"
    assert import_object("tools.who", [two])() == "two"


def test_a_module_loaded_from_elsewhere_is_neither_returned_nor_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    elsewhere = suite(tmp_path / "elsewhere", lanterns="lit = 'elsewhere'")
    monkeypatch.syspath_prepend(elsewhere)
    import lanterns  # type: ignore[import-not-found]

    here = suite(tmp_path / "here", lanterns="lit = 'here'", porch="import lanterns\nlit = lanterns.lit")
    assert import_object("lanterns.lit", [here]) == "here"
    assert import_object("porch.lit", [here]) == "here"
    assert sys.modules["lanterns"] is lanterns


def test_a_module_that_is_loaded_already_from_the_folder_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = suite(tmp_path, lamps="class Lamp: pass")
    monkeypatch.syspath_prepend(folder)
    import lamps  # type: ignore[import-not-found]

    assert import_object("lamps.Lamp", [folder]) is lamps.Lamp


def test_the_first_folder_wins(tmp_path: Path) -> None:
    one, two = suite(tmp_path / "one", jars="n = 1"), suite(tmp_path / "two", jars="n = 2", lids="n = 3")
    assert import_object("jars.n", [one, two]) == 1
    assert import_object("lids.n", [one, two]) == 3


def test_a_missing_module_suggests_the_nearest_name(tmp_path: Path) -> None:
    folder = suite(tmp_path, seeds="")
    assert str(problem("seds.Seed", folder)) == (
        "cannot import 'seds.Seed': there is no module 'seds'\n    did you mean 'seeds'?"
    )


def test_a_missing_attribute_suggests_the_nearest_name(tmp_path: Path) -> None:
    folder = suite(tmp_path, seeds="class Seed:\n    count = 1\n")
    assert str(problem("seeds.Sede", folder)) == (
        "cannot import 'seeds.Sede': the module 'seeds' has no 'Sede'\n    did you mean 'Seed'?"
    )
    assert "the object 'seeds.Seed' has no 'coun'" in str(problem("seeds.Seed.coun", folder))


@pytest.mark.parametrize("dotted", ["seeds", "", "a..b", "a.b-c", ".a", "a.b:c"])
def test_text_that_is_not_a_dotted_path_is_refused(dotted: str) -> None:
    assert "is not a dotted path" in str(problem(dotted))


@pytest.mark.parametrize(
    ("source", "said"),
    [
        (
            "x = 1\nx + 'a'\n",
            "module broken raised TypeError: unsupported operand type(s) for +: 'int' and 'str'",
        ),
        ("import sys\nsys.exit('bye')\n", "module broken raised SystemExit: bye"),
        ("x = 1\nimport not_there_at_all\n", "module broken raised ModuleNotFoundError: No module named"),
        ("x = 1\nx = = 2\n", "module broken raised SyntaxError: invalid syntax"),
    ],
)
def test_a_module_that_fails_is_reported_with_its_line(tmp_path: Path, source: str, said: str) -> None:
    found = problem("broken.x", suite(tmp_path, broken=source))
    assert said in str(found)
    assert found.span is not None
    assert (Path(found.span.file).name, found.span.line) == ("broken.py", 2)


def test_a_module_can_be_corrected_and_imported_again(tmp_path: Path) -> None:
    folder = suite(tmp_path, mended="1 / 0")
    problem("mended.x", folder)
    (folder / "mended.py").write_text("x = 'whole again'")
    assert import_object("mended.x", [folder]) == "whole again"


def test_a_module_of_an_earlier_folder_is_found_though_that_of_a_later_one_was_imported_first(
    tmp_path: Path,
) -> None:
    early = suite(tmp_path / "early", seeds="place = 'early'\n")
    late = suite(tmp_path / "late", seeds="place = 'late'\n")
    assert import_object("seeds.place", [late]) == "late"
    assert import_object("seeds.place", [early, late]) == "early"


@pytest.mark.parametrize(("said", "seen"), [(None, "True"), ("False", "False")])
def test_libraries_fetch_no_data_when_they_are_imported_unless_the_user_has_them_fetch_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str | None, seen: str
) -> None:
    monkeypatch.delenv(LOCAL_PRICES, raising=False)
    if said is not None:
        monkeypatch.setenv(LOCAL_PRICES, said)
    folder = suite(tmp_path, litellm=f"import os\nlocal = os.environ.get({LOCAL_PRICES!r})\n")
    assert import_object("litellm.local", [folder]) == seen
    assert os.environ.get(LOCAL_PRICES) == said
