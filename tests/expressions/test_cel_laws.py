"""Laws: cel-python's own evaluator gives the same answers, and nothing but an answer or an error comes out.

Left out of the comparison, because cel-python leaves its own types there: sums of lists, and Python's
readings of `"a" * true` and `"%d" % 1`.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from celpy.adapter import json_to_cel
from celpy.celparser import CELParser
from celpy.celtypes import BoolType, DoubleType, IntType, MapType, StringType
from celpy.evaluation import Activation, CELEvalError, Evaluator
from hypothesis import example, given, settings
from hypothesis import strategies as st

from harness.errors import ExpressionError
from harness.expressions.cel import compile

STATE: dict[str, Any] = {
    "i": 3,
    "f": 1.5,
    "s": "ab",
    "t": True,
    "none": None,
    "l": [1, 2, 0],
    "ls": ["a", "ab"],
    "m": {"a": 1, "b": {"c": [None, 2.5]}},
    "rows": [{"k": 1}, {"k": "x"}, {}],
}
ERROR, BROKEN = "an error", "no answer"


def words(text: str) -> st.SearchStrategy[str]:
    return st.sampled_from(text.split())


ATOMS = words(
    """1 0 -2 2.5 0.0 "a" "ab" "" true false null [] {} state.i state.f state.s state.t state.none state.l state.ls
    state.m state.m.a state["m"].b state.m.b.c state.m.b.c[0] state.m.b.c[1] state.l[0] state.l[-1] state.l[7]
    state.rows state.rows[0].k state.rows[2].k state.nope state.i.x nope 9223372036854775807
    state.l[size(state.l)-1] state.rows[size(state.rows)-1].k [1,state.i] {"a":state.s}"""
)
NUMBERS = words("1 0 -2 2.5 state.i state.f state.l[0] 9223372036854775807 state.nope")
SUMMANDS = words('1 -2 2.5 "a" true null {} state.i state.f state.s state.m.a 9223372036854775807 state.nope')
CONDITIONS = [
    "x == 1",
    "x > 0",
    '"a" == x',
    "x.k == 1",
    "1 / x == 1",
    "x",
    "true",
    "has(x.k)",
    "x in state.l",
]


def compound(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    def joined(operators: list[str], operands: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        return st.builds("({} {} {})".format, operands, st.sampled_from(operators), operands)

    return st.one_of(
        joined(["==", "!=", "<", "<=", ">", ">=", "in"], inner),
        joined(["||", "&&"], inner),
        joined(["-", "*", "/", "%"], NUMBERS),
        joined(["+"], SUMMANDS),
        st.builds("({} ? {} : {})".format, inner, inner, inner),
        st.builds("!{}".format, inner),
        st.builds("-{}".format, inner),
        st.builds("has({})".format, inner),
        st.builds("size({})".format, inner),
        st.builds("[{}, {}]".format, inner, inner),
        st.builds("({})[{}]".format, inner, inner),
        st.builds("({}).startsWith({})".format, inner, inner),
        st.builds(
            "({}).{}(x, {})".format,
            inner,
            st.sampled_from(["exists", "all", "map", "filter", "exists_one"]),
            st.sampled_from(CONDITIONS),
        ),
    )


EXPRESSIONS = st.recursive(ATOMS, compound, max_leaves=8)


def reference(source: str) -> Any:
    """cel-python's own answer, with stored nulls as false."""
    nulls_read_as_false = {name: json_to_cel(_without_nulls(value)) for name, value in STATE.items()}
    context = {"state": MapType({StringType(name): value for name, value in nulls_read_as_false.items()})}
    try:
        return plain(Evaluator(CELParser().parse(source), Activation()).evaluate(context))
    except CELEvalError:
        return ERROR
    except Exception:  # it broke, as over `1.exists(…)`
        return BROKEN


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return False if value is None else value


def plain(value: Any) -> Any:
    if isinstance(value, MapType):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    for cel, python in ((BoolType, bool), (IntType, int), (DoubleType, float), (StringType, str)):
        if isinstance(value, cel):
            return python(value)
    if isinstance(value, Exception):
        raise value
    return value


def answer(source: str) -> Any:
    try:
        return compile(source, null_as_false=True).evaluate({"state": STATE})
    except ExpressionError:
        return ERROR


@settings(max_examples=8 * settings().max_examples)
@given(EXPRESSIONS)
@example("state.l.map(x, 1 / x) == [1] || true")
@example('state.rows[size(state.rows)-1].k == "x"')
@example("state.m == {}")
@example("true ? (true || (1).exists(x, x == 1)) : 1")
def test_the_answer_is_cel_pythons_own(source: str) -> None:
    theirs, ours = reference(source), answer(source)
    # Its map, filter and exists_one throw past `||`, `&&`, `has` and `exists`; here their errors are absorbed too.
    throws = any(f".{macro}(" in source for macro in ("map", "filter", "exists_one"))
    # It breaks over `1.exists(…)`, which a conditional around it turns into an error.
    throws |= " ? " in source and any(f".{macro}(" in source for macro in ("exists", "all"))
    assert repr(ours) == repr(theirs) or (theirs == ERROR and throws) or theirs == BROKEN


FRAGMENTS = st.lists(
    words(
        r"""( ) [ ] { } , : . ? ! - + * / % < > = == && || " ' \ // r" ''' 1 0.5 1u 0x 99999999999999999999 a x
        state size json default has map filter exists reduce min last split substring template int double string
        timestamp duration bytes type list getHours matches contains "[" "2020-01-01T00:00:00Z" "1h" -1 null in"""
    ),
    max_size=12,
).map(" ".join)


def outcome(source: str) -> None:
    """Compiles and evaluates; anything but an ExpressionError comes out of here."""
    with suppress(ExpressionError):
        compile(source).evaluate({"state": STATE, "a": "2020-01-01T00:00:00Z", "x": [1]})


@settings(max_examples=4 * settings().max_examples)
@given(st.one_of(st.text(max_size=40), FRAGMENTS))
def test_any_text_gives_a_value_or_an_expression_error(source: str) -> None:
    outcome(source)


FUNCTIONS = words(
    """bool bytes contains default double duration endsWith getDate getDayOfMonth getDayOfWeek getDayOfYear
    getFullYear getHours getMilliseconds getMinutes getMonth getSeconds indexOf int join json jsonValid last list
    lowerAscii map matches min null_type replace size split startsWith string substring template timestamp trim
    type uint upperAscii"""
)
ARGUMENTS = st.lists(
    st.one_of(
        ATOMS,
        st.sampled_from(
            [
                'timestamp("2020-01-01T00:00:00Z")',
                'duration("9h")',
                'b"a"',
                "5u",
                "int",
                '"["',
                '"UTC"',
                '"No/Where"',
            ]
        ),
        st.text(max_size=8).map(lambda text: '"' + "".join(c for c in text if c.isalnum()) + '"'),
    ),
    max_size=3,
)


@settings(max_examples=8 * settings().max_examples)
@given(FUNCTIONS, ARGUMENTS)
def test_any_arguments_give_a_value_or_an_expression_error(name: str, arguments: list[str]) -> None:
    outcome(f"{name}({', '.join(arguments)})")
