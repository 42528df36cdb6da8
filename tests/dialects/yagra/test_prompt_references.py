"""The search for the prompt files of a workflow. spec: "Prompt References"."""

from __future__ import annotations

from tests.dialects.yagra.loader import Loader
from tests.dialects.yagra.valid import PROMPTS, WORKFLOW, changed


def test_a_bare_path_is_searched_beside_the_workflow_then_in_parent_folders(loader: Loader) -> None:
    near = {"flows/prompts/names.yaml": "latin: {user: near}"}
    loader.graph(WORKFLOW, {**PROMPTS, **near})
    (problem,) = loader.problems(changed(("#latin", "#plain")), near)
    assert "flows/prompts/names.yaml" in problem.message


def test_folders_that_may_not_be_read_are_not_searched(loader: Loader) -> None:
    (loader.folder.parent / "names.yaml").write_text("latin: {user: outside}", encoding="utf-8")
    (problem,) = loader.problems(changed(("prompts/names", "names")))
    assert problem.code == "missing-file"


def test_a_path_that_leads_out_of_the_project_is_refused(loader: Loader) -> None:
    (problem,) = loader.problems(changed(("prompts/names.yaml", "../../names.yaml")))
    assert (problem.code, loader.place(problem)) == ("path-outside", '"../../names.yaml#latin"')


def test_an_error_in_a_prompt_file_is_located_there(loader: Loader) -> None:
    (problem,) = loader.problems(WORKFLOW, {"prompts/names.yaml": "latin: [a"})
    assert problem.code == "syntax"
    assert problem.span is not None
    assert problem.span.file.endswith("prompts/names.yaml")
