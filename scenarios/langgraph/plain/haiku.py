"""Agents without a framework: plain functions around the client of a provider."""

import openai


def write(input: dict) -> dict:
    """Write a haiku, and count its lines."""
    client = openai.OpenAI(max_retries=2)
    response = client.chat.completions.create(
        model="gpt-4o-mini",
        messages=[{"role": "user", "content": f"A haiku about {input['topic']}"}],
    )
    text = response.choices[0].message.content
    return {"haiku": text, "lines": len(text.splitlines())}


async def write_async(question: str, thread_id: str) -> str:
    """Ask the responses API, which streams."""
    client = openai.AsyncOpenAI(max_retries=0)
    text = ""
    async with await client.responses.create(
        model="gpt-4o", input=question, stream=True, metadata={"thread": thread_id}
    ) as stream:
        async for event in stream:
            if event.type == "response.output_text.delta":
                text += event.delta
    return text


class Judge:
    """An agent that is an object."""

    def __init__(self, limit: int) -> None:
        self.limit = limit

    def __call__(self, input: str, context: dict) -> bool:
        response = openai.OpenAI().chat.completions.create(
            model=context["model"], messages=[{"role": "user", "content": f"Grade this: {input}"}]
        )
        return int(response.choices[0].message.content) >= self.limit


judge = Judge(limit=4)
