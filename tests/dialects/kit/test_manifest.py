"""Opening manifests: their documents, imported objects, and collected problems."""

from pathlib import Path

import pytest

from harness.dialects.kit.manifest import Problems, load_hook, load_object, only_document, refuse_deep_nesting
from harness.dialects.request import LoadRequest
from harness.errors import ManifestError, Problem, Span

HERE = Span("agent.yaml", 3, 7)


def test_a_document_is_read_from_its_file_or_its_text(tmp_path: Path) -> None:
    file = tmp_path / "agent.yaml"
    file.write_text("enabled: yes\n", encoding="utf-8")
    assert only_document(LoadRequest((file,)), what="a workflow").value == {"enabled": True}
    text = LoadRequest((Path("inline"),), text="name: a")
    document = only_document(text, what="a workflow")
    assert (document.value, document.span().file) == ({"name": "a"}, "inline")


def test_the_yaml_version_is_the_dialects_own() -> None:
    request = LoadRequest((Path("inline"),), text="enabled: yes")
    assert only_document(request, what="a workflow", yaml="1.2").value == {"enabled": "yes"}


def test_a_second_file_is_refused() -> None:
    request = LoadRequest((Path("a.yaml"), Path("b.yaml")), named_at=HERE)
    with pytest.raises(ManifestError, match=r"agent\.yaml:3:7: a workflow is a single file") as refusal:
        only_document(request, what="a workflow")
    assert refusal.value.code == "several-manifests"


def test_components_of_other_files_are_refused() -> None:
    request = LoadRequest((Path("a.yaml"),), components={"b": "c"}, components_at={"b": HERE})
    with pytest.raises(
        ManifestError, match=r"agent\.yaml:3:7: a workflow is a single file, so there"
    ) as refusal:
        only_document(request, what="a workflow")
    assert refusal.value.code == "several-manifests"


def test_too_deep_nesting_is_refused() -> None:
    too_deep = pytest.raises(ManifestError, match=r"agent\.yaml:1:1: nested too deep")
    with too_deep, refuse_deep_nesting(Path("agent.yaml"), "nested too deep"):
        raise RecursionError


def test_a_failed_import_is_located(tmp_path: Path) -> None:
    (tmp_path / "kit_import_case.py").write_text("def greet(): ...\n", encoding="utf-8")
    assert load_object("kit_import_case.greet", [tmp_path], HERE).__name__ == "greet"
    with pytest.raises(ManifestError, match=r"agent\.yaml:3:7: .*has no 'great'\n.*'greet'"):
        load_object("kit_import_case.great", [tmp_path], HERE)


def test_a_hook_is_an_object_or_its_import_path() -> None:
    request = LoadRequest((Path("agent.yaml"),), named_at=HERE)
    hook = object()
    assert load_hook(hook, request) is hook
    assert load_hook("pathlib.Path", request) is Path
    with pytest.raises(ManifestError, match=r"agent\.yaml:3:7: "):
        load_hook("pathlib.Bath", request)


def test_all_errors_are_raised_at_once_in_the_order_of_the_file() -> None:
    problems = Problems([Problem("old", "old", severity="warning")])
    problems.raise_errors()
    problems.refuse("late", "a late one", Span("agent.yaml", 9, 1), "mend it")
    problems.add([Problem("odd", "odd", severity="warning"), Problem("early", "an early one", HERE)])
    with problems.collecting():
        raise ManifestError(Problem("middle", "in the middle", Span("agent.yaml", 5, 1)))
    with pytest.raises(ManifestError) as refusal:
        problems.raise_errors()
    assert [problem.code for problem in refusal.value.problems] == ["early", "middle", "late"]
    assert [problem.code for problem in problems.warnings] == ["old", "odd"]
