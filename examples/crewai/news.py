"""A newsroom of CrewAI: a crew of two agents with a tool, and a flow with a router."""

from crewai import LLM, Agent, Crew, Process, Task
from crewai.flow.flow import Flow, listen, router, start
from crewai.tools import tool

ARCHIVE = {"harbour": "The harbour opened in 1893."}


@tool("archive")
def archive(topic: str) -> str:
    """Look up a topic in the archive."""
    return ARCHIVE.get(topic, "nothing")


def write(topic: str) -> dict:
    """Let a researcher and a writer work one after the other."""
    llm = LLM(model="openai/gpt-4o")
    researcher = Agent(
        role="Researcher", goal="Find facts", backstory="You are exact.", tools=[archive], llm=llm
    )
    writer = Agent(
        role="Writer", goal="Write news", backstory="You are brief.", llm=LLM(model="openai/gpt-4o-mini")
    )
    facts = Task(description=f"Find facts about {topic}.", expected_output="A fact.", agent=researcher)
    text = Task(
        description="Write one sentence.", expected_output="A sentence.", agent=writer, context=[facts]
    )
    crew = Crew(agents=[researcher, writer], tasks=[facts, text], process=Process.sequential, verbose=False)
    result = crew.kickoff()
    return {"facts": result.tasks_output[0].raw, "text": result.raw}


class Desk(Flow):
    """Sort letters, then answer complaints."""

    @start()
    def sort(self) -> str:
        """Ask which kind a letter is."""
        return LLM(model="openai/gpt-4o-mini").call(f"Which kind: {self.state['letter']}")

    @router(sort)
    def kind(self, found: str) -> str:
        """Return the kind."""
        return found

    @listen("complaint")
    def answer(self) -> str:
        """Answer a complaint."""
        return LLM(model="openai/gpt-4o").call(f"Answer: {self.state['letter']}")

    @listen("praise")
    def thank(self) -> str:
        """Thank."""
        return "Thank you!"


async def sort(letter: str) -> str:
    """Run the flow."""
    return await Desk(suppress_flow_events=True).kickoff_async(inputs={"letter": letter})
