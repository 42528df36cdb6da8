"""Answers to the pauses of a run, from the people of the simulated world."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from harness.engine.context import RunContext
from harness.engine.pauses import Question
from harness.graph.effects import HumanCall
from harness.graph.model import State
from harness.graph.to_json import to_json


class People:
    """Asks the world's people the questions of a run. The scheduler decides when."""

    def __init__(self, run: RunContext) -> None:
        self._run = run

    def can_answer(self, questions: Iterable[Question], state: State) -> bool:
        """True if there are questions and the world has an answer to each. None may be a static breakpoint."""
        calls = [self._call(question) for question in questions]
        return bool(calls) and self._run.world.has_answers(calls, state)

    async def answer(self, question: Question, state: State) -> Any:
        """Return the answer of a person, in the form that the paused node receives (`Lifecycle.answer`).

        Raises:
            Exception: the world's answer is an error. It is recorded in `RunContext.failure`.
        """
        run = self._run
        try:
            reply = await run.perform(self._call(question), state, question.node)
        except Exception as error:
            run.failure = (error, question.node)
            raise
        return await run.graph.lifecycle.answer(reply, run)

    def _call(self, question: Question) -> HumanCall:
        run, node = self._run, question.node
        name = run.caller.name if run.caller and run.caller.attribute_to_caller else node
        value = to_json(question.value)
        # `{question, options}` if the pause has a question, else `{value}`.
        if isinstance(value, dict) and "question" in value:
            args = {key: value[key] for key in ("question", "options") if key in value}
        else:
            args = {"value": value}
        return HumanCall(node=run.effect_node(node), name=name, args=args)
