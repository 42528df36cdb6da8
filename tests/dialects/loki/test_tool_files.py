"""Reading the names and parameters of tools from their files, without running them. spec: "Custom Tools"."""

from __future__ import annotations

from pathlib import Path
from time import process_time
from typing import Any

import pytest

from harness.dialects.loki.tool_files import global_tool, tools_in
from harness.errors import ManifestError

BASH = {
    "--name": ("name", {"type": "string"}, False),
    "--name About it": ("name", {"type": "string", "description": "About it"}, False),
    "--name! About it": ("name", {"type": "string", "description": "About it"}, True),
    "-n --name! About": ("name", {"type": "string", "description": "About"}, True),
    "-n About": ("n", {"type": "string", "description": "About"}, False),
    "--two-words": ("two_words", {"type": "string"}, False),
    "--name[a|b] About": ("name", {"type": "string", "enum": ["a", "b"], "description": "About"}, False),
    "--name[=a|b]": ("name", {"type": "string", "enum": ["a", "b"]}, False),
    "--name![a|b]": ("name", {"type": "string", "enum": ["a", "b"]}, True),
    "--name[`list_them`] About": ("name", {"type": "string", "description": "About"}, False),
    "--name=5 About": ("name", {"type": "string", "description": "About"}, False),
    '--name="a b" About': ("name", {"type": "string", "description": "About"}, False),
    "--name=`now` About": ("name", {"type": "string", "description": "About"}, False),
    "--name <INT> About": ("name", {"type": "integer", "description": "About"}, False),
    "--name! <NUM>": ("name", {"type": "number"}, True),
    "--name <FILE> About": ("name", {"type": "string", "description": "About"}, False),
    "--name $$ About": ("name", {"type": "string", "description": "About"}, False),
    "--name* About": (
        "name",
        {"type": "array", "items": {"type": "string"}, "description": "About"},
        False,
    ),
    "--name+": ("name", {"type": "array", "items": {"type": "string"}}, True),
    "--name*,[a|b]": ("name", {"type": "array", "items": {"type": "string", "enum": ["a", "b"]}}, False),
}


def schema_of(text: str, folder: Path, name: str = "tools.sh") -> Any:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    (tool,) = tools_in(path)
    return tool.schema


@pytest.mark.parametrize("written", BASH)
def test_an_option_of_a_bash_tool(written: str, tmp_path: Path) -> None:
    name, value, required = BASH[written]
    expected = {"type": "object", "properties": {name: value}, "required": [name] if required else []}
    assert schema_of(f"# @cmd Do\n# @option {written}\ndo_it() {{ :; }}\n", tmp_path) == expected


def test_a_flag_is_true_or_false(tmp_path: Path) -> None:
    schema = schema_of("# @cmd Do\n# @flag -v --verbose* Talk\ndo_it() { :; }\n", tmp_path)
    assert schema["properties"] == {"verbose": {"type": "boolean", "description": "Talk"}}
    assert schema["required"] == []


def test_other_tags_are_no_parameters(tmp_path: Path) -> None:
    tags = "# @arg target! What\n# @env HOME Home\n# @meta require-tools jq\n# @alias d\n"
    assert schema_of(f"# @cmd Do\n{tags}do_it() {{ :; }}\n", tmp_path)["properties"] == {}


def test_the_commands_of_a_bash_file_are_its_tools(tmp_path: Path) -> None:
    path = tmp_path / "tools.sh"
    text = """\
        #!/usr/bin/env bash
        # @describe Tools of the desk
        # @option --outer Of the file, not of a tool
        helper() { :; }
        # @cmd Cut
        # @option --board
        cut-it() {
            inner
        }
        # @cmd
        function paint {
            :
        }
        # @cmd Hidden
        _hidden() { :; }
        """
    path.write_bytes(text.replace("\n", "\r\n").encode("utf-8-sig"))
    found = [(tool.name, tool.description, list(tool.schema["properties"])) for tool in tools_in(path)]
    assert found == [("cut_it", "Cut", ["board"]), ("paint", "Tools of the desk", [])]


def test_the_text_of_a_tag_continues_in_the_comments_below_it(tmp_path: Path) -> None:
    path = tmp_path / "tools.sh"
    path.write_text("""\
#!/usr/bin/env bash
# a comment of no tag
# @describe Tools of the desk

# @cmd Search the archive.
# Use this when you need a date.
#
#   One question at a time.
# @option --query! What is searched
# with any words
# @env OUT=/dev/stdout Where it goes
# and this is of no tool

# nor is this
search() { :; }
""")
    (tool,) = tools_in(path)
    assert (
        tool.description == "Search the archive.\nUse this when you need a date.\n\nOne question at a time."
    )
    assert tool.schema["properties"] == {
        "query": {"type": "string", "description": "What is searched\nwith any words"}
    }


def test_a_global_tool_is_the_main_function_of_its_file(tmp_path: Path) -> None:
    path = tmp_path / "gauge.sh"
    path.write_text("# @describe Level\n# @option --at!\nhelper() { :; }\nmain() {\n:\n}\n")
    tool = global_tool("gauge", path)
    assert (tool.name, tool.description, tool.schema["required"]) == ("gauge", "Level", ["at"])


def test_a_global_tool_without_its_function_has_no_parameters(tmp_path: Path) -> None:
    path = tmp_path / "gauge.py"
    path.write_text("def walk(at: str): ...\n")
    assert global_tool("gauge", path).schema["properties"] == {}


PYTHON = {
    "a: str": ({"type": "string"}, True),
    "a: int": ({"type": "integer"}, True),
    "a: float": ({"type": "number"}, True),
    "a: bool": ({"type": "boolean"}, True),
    "a": ({"type": "string"}, True),
    "a: int = 3": ({"type": "integer"}, False),
    "*, a: int": ({"type": "integer"}, True),
    "a: int, /": ({"type": "integer"}, True),
    "a: 'int'": ({"type": "integer"}, True),
    "a: list": ({"type": "array"}, True),
    "a: list[int]": ({"type": "array", "items": {"type": "integer"}}, True),
    "a: List[str]": ({"type": "array", "items": {"type": "string"}}, True),
    "a: dict[str, int]": ({"type": "object"}, True),
    "a: Optional[int]": ({"type": "integer"}, False),
    "a: typing.Optional[list[int]]": ({"type": "array", "items": {"type": "integer"}}, False),
    "a: int | None": ({"type": "integer"}, False),
    "a: None | int": ({"type": "integer"}, False),
    "a: Union[int, None]": ({"type": "integer"}, False),
    "a: Literal['x', 'y']": ({"type": "string", "enum": ["x", "y"]}, True),
    "a: Literal[1, 2] = 1": ({"enum": [1, 2]}, False),
    "a: Literal['x'] | None": ({"type": "string", "enum": ["x"]}, False),
    "a: list[()]": ({"type": "array"}, True),
    "a: Optional[()]": ({"type": "string"}, True),
    "a: Literal[b'x', 'y', ...]": ({"type": "string", "enum": ["y"]}, True),
    "a: Boat, *rest, **more": ({"type": "string"}, True),
}


@pytest.mark.parametrize("written", PYTHON)
def test_a_parameter_of_a_python_tool(written: str, tmp_path: Path) -> None:
    value, required = PYTHON[written]
    expected = {"type": "object", "properties": {"a": value}, "required": ["a"] if required else []}
    assert schema_of(f"def run({written}): ...\n", tmp_path, "tools.py") == expected


TYPESCRIPT = {
    "a: string": ({"type": "string"}, True),
    "a: number": ({"type": "number"}, True),
    "a: boolean": ({"type": "boolean"}, True),
    "a": ({"type": "string"}, True),
    "a?: number": ({"type": "number"}, False),
    "a: number = f(1, 2)": ({"type": "number"}, False),
    "a: number[]": ({"type": "array", "items": {"type": "number"}}, True),
    "a: Array<number>": ({"type": "array", "items": {"type": "number"}}, True),
    "a: (number | null)[]": ({"type": "array", "items": {"type": "number"}}, True),
    "a: number | null": ({"type": "number"}, False),
    "a: 'x' | \"y\"": ({"type": "string", "enum": ["x", "y"]}, True),
    "a: Record<string, number>": ({"type": "object"}, True),
    "a: {b: string, c: number}": ({"type": "object"}, True),
    "a: number /* how many, at most */": ({"type": "number"}, True),
    "a: (b: string) => void": ({"type": "string"}, True),
    "a: 'it\\'s, (' | 'x'": ({"type": "string"}, True),
    "a: number // it's a number\n": ({"type": "number"}, True),
}


@pytest.mark.parametrize("written", TYPESCRIPT)
def test_a_parameter_of_a_typescript_tool(written: str, tmp_path: Path) -> None:
    value, required = TYPESCRIPT[written]
    expected = {"type": "object", "properties": {"a": value}, "required": ["a"] if required else []}
    text = f"export async function run({written}): Promise<string> {{ return ''; }}\nfunction own(b: string) {{}}\n"
    assert schema_of(text, tmp_path, "tools.ts") == expected


@pytest.mark.parametrize(
    ("written", "kind"),
    [(f"number{'[]' * 3000}", "array"), (f"{'(' * 3000}number{')' * 3000}", "string")],
    ids=["lists", "brackets"],
)
def test_a_typescript_type_of_many_brackets(written: str, kind: str, tmp_path: Path) -> None:
    schema = schema_of(f"export function run(a: {written}) {{}}\n", tmp_path, "tools.ts")
    assert schema["properties"]["a"]["type"] == kind


def test_type_parameters_and_comments_before_a_typescript_function(tmp_path: Path) -> None:
    path = tmp_path / "tools.ts"
    path.write_text("""\
/** Of the file. */
/* no */ const x = "/** nor this */";
/** Paints. */
export async function paint<T extends () => void, U = Array<string>>(a: T, b?: U) {}
/**/ export function cut(a: string) {}
/** Open: export function sink(a: string, /* in a comment
export function wash<T(a: string) {}
export function dry(a: string) {}
""")
    found = [(tool.name, tool.description, list(tool.schema["properties"])) for tool in tools_in(path)]
    assert found == [
        ("paint", "Paints.", ["a", "b"]),
        ("cut", "", ["a"]),
        ("sink", "", ["a"]),
        ("dry", "", ["a"]),
    ]


BROKEN_TYPESCRIPT = {
    "functions": "export function f(a: string,\n",
    "type parameters": "export function f<\n",
    "comments": "/** \n",
    "quotes": 'export function f(a: "' + '\\"' * 10,
}


@pytest.mark.parametrize("unclosed", BROKEN_TYPESCRIPT)
def test_unclosed_strings_and_comments_are_read_in_linear_time(unclosed: str, tmp_path: Path) -> None:
    path = tmp_path / "tools.ts"
    path.write_text(BROKEN_TYPESCRIPT[unclosed] * 5_000)
    start = process_time()
    tools_in(path)
    assert process_time() - start < 5


def test_a_tool_of_many_parameters(tmp_path: Path) -> None:
    path = tmp_path / "tools.ts"
    path.write_text(f"export function f({', '.join(f'a{at}: string' for at in range(15_000))}) {{}}\n")
    start = process_time()
    (tool,) = tools_in(path)
    assert len(tool.schema["required"]) == 15_000
    assert process_time() - start < 5


@pytest.mark.parametrize(
    ("name", "text", "message", "place"),
    [
        ("tools.py", b"x = 1\ndef run(:\n", "cannot be read", (2, 9)),
        ("tools.sh", b"\xff\xfe\x00", "it is not UTF-8 text", (1, 1)),
        ("tools.py", b"a = '\x00'", "cannot be read", (1, 1)),
    ],
)
def test_a_file_that_cannot_be_read_is_located(
    name: str, text: bytes, message: str, place: tuple[int, int], tmp_path: Path
) -> None:
    path = tmp_path / name
    path.write_bytes(text)
    with pytest.raises(ManifestError) as refusal:
        tools_in(path)
    (problem,) = refusal.value.problems
    assert (problem.code, message in problem.message) == ("bad-tool-file", True)
    assert problem.span is not None
    assert (problem.span.line, problem.span.column) == place
