"""A clinic of Google's ADK: an agent that transfers to others, a tool that writes state, a loop of two agents."""

from google.adk.agents import Agent, LoopAgent
from google.adk.runners import InMemoryRunner
from google.adk.tools import ToolContext
from google.genai import types

FREE = {"monday": ["9:00", "10:30"], "tuesday": []}


def free_times(day: str) -> dict:
    """List the free times of a day."""
    return {"times": FREE[day]}


def book(day: str, time: str, tool_context: ToolContext) -> dict:
    """Book a time."""
    tool_context.state["booked"] = f"{day} {time}"
    return {"ok": True}


def approve(tool_context: ToolContext) -> dict:
    """End the review."""
    tool_context.actions.escalate = tool_context.actions.skip_summarization = True
    return {}


desk = Agent(
    name="desk",
    model="gemini-2.5-flash",
    description="Books appointments.",
    instruction="Book an appointment for the patient.",
    tools=[free_times, book],
)
doctor = Agent(name="doctor", model="gemini-2.5-pro", description="Gives advice.", instruction="Give advice.")
clinic = Agent(
    name="clinic",
    model="gemini-2.5-flash",
    instruction="Transfer to who can help.",
    sub_agents=[desk, doctor],
)
letter = LoopAgent(
    name="letter",
    max_iterations=3,
    sub_agents=[
        Agent(name="writer", model="gemini-2.5-flash", instruction="Write a letter.", output_key="draft"),
        Agent(name="critic", model="gemini-2.5-pro", instruction="Judge this: {draft}", tools=[approve]),
    ],
)


async def run(agent: Agent, text: str, thread_id: str) -> dict:
    """Run an agent in a session of its own, and return what it says, who says it, and the state."""
    runner = InMemoryRunner(agent=agent, app_name="clinic")
    session = await runner.session_service.create_session(
        app_name="clinic", user_id="patient", session_id=thread_id
    )
    message = types.Content(role="user", parts=[types.Part(text=text)])
    said = []
    async for event in runner.run_async(user_id="patient", session_id=session.id, new_message=message):
        if event.content and event.content.parts and event.content.parts[0].text:
            said.append((event.author, event.content.parts[0].text))
    session = await runner.session_service.get_session(
        app_name="clinic", user_id="patient", session_id=session.id
    )
    return {"author": said[-1][0], "said": said[-1][1], "state": dict(session.state)}


async def visit(text: str, thread_id: str) -> dict:
    """Answer a patient."""
    return await run(clinic, text, thread_id)


async def write(text: str, thread_id: str) -> dict:
    """Write a letter until the critic approves."""
    return await run(letter, text, thread_id)
