"""The functional API: an entrypoint calls tasks, side by side, asks a person and remembers the last essay."""

from langchain_openai import ChatOpenAI
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.func import entrypoint, task
from langgraph.types import RetryPolicy, interrupt

model = ChatOpenAI(model="gpt-4o-mini", max_retries=0)


@task
async def draft(topic: str, style: str) -> str:
    return (await model.ainvoke(f"Write a {style} essay about {topic}")).content


@task(retry_policy=RetryPolicy(max_attempts=2, initial_interval=1, jitter=False, retry_on=Exception))
def grade(text: str) -> int:
    return int(model.invoke(f"Grade from 1 to 6: {text}").content)


@entrypoint(checkpointer=InMemorySaver())
async def essay(topic: str, *, previous: dict | None = None) -> dict:
    pending = [draft(topic, style) for style in ("short", "long")]
    drafts = [await each for each in pending]
    grades = [await grade(each) for each in drafts]
    best = drafts[grades.index(max(grades))]
    answer = interrupt({"draft": best, "grades": grades})
    if not answer["ok"]:
        return {"text": None, "before": previous and previous["text"]}
    return {"text": answer.get("text", best), "before": previous and previous["text"]}
