"""Links in the documents, and the files they name, exist. The map of the code has one way to each subject."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PLACES = ("*.md", "docs/*.md", "scenarios/*.md", "cassettes/*.md", "reports/*.md")
DOCUMENTS = sorted(path for place in PLACES for path in ROOT.glob(place))
NAMED = re.compile(r"`((?:harness|tests|docs|scenarios|benchmarks)/[\w./-]*)`")


def anchors(document: Path) -> set[str]:
    """Return the anchors of a document's headings, as GitHub generates them."""
    text = re.sub(r"^```.*?^```$", "", document.read_text(encoding="utf-8"), flags=re.M | re.S)
    headings = re.findall(r"^#+ (.+)$", text, flags=re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_targets_of_links_exist(document: Path) -> None:
    text = document.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in target:
            continue
        file, _, anchor = target.partition("#")
        path = document.parent / file if file else document
        assert path.exists(), target
        assert not anchor or anchor in anchors(path), target


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_files_that_are_named_exist(document: Path) -> None:
    named = NAMED.findall(document.read_text(encoding="utf-8"))
    assert [name for name in named if not (ROOT / name).exists()] == []


ARCHITECTURE = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
DIALECTS = sorted({path.parent.name for path in ROOT.glob("harness/dialects/*/dialect.py")} - {"langgraph"})
"""The declarative dialects: the manifests of an app are Python, so its front end has other modules."""
MODULE = re.compile(r"(?:harness|tests)/[\w<>./-]*|[\w<>/]+\.py\b")


def missing_modules(text: str) -> list[str]:
    """Return the modules in a text that do not exist.

    A path begins at the root or below harness/; a bare name is beside the path before it. `<name>` is every dialect.
    """
    missing, folder = [], Path("harness")
    for found in MODULE.findall(text):
        path = Path(found if found.startswith(("harness/", "tests/")) else f"harness/{found}")
        places = [path] if "/" in found else [folder / found, path]
        if not any(
            all((ROOT / str(each).replace("<name>", name)).exists() for name in DIALECTS) for each in places
        ):
            missing.append(found)
        if "/" in found:
            folder = path if found.endswith("/") else path.parent
    return missing


def test_modules_that_the_architecture_names_exist() -> None:
    assert len(DIALECTS) == 5
    assert missing_modules(ARCHITECTURE) == []


@pytest.mark.parametrize(
    "text",
    [
        "harness/no_such.py",
        "cli/no_such.py",
        "`harness/cli/run.py`, `no_such.py`",
        "`harness/dialects/<name>/nodes.py`",
    ],
)
def test_a_module_that_does_not_exist_is_found(text: str) -> None:
    assert len(missing_modules(text)) == 1


def test_the_map_of_the_code_has_at_most_thirty_rows() -> None:
    section = ARCHITECTURE.partition("## Where to look")[2].partition("\n## ")[0]
    assert 0 < section.count("\n| ") - 1 <= 30
