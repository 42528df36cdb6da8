"""Agents that talk to each other (25.4.2): Swarm and ManagerWorkers. schema: Swarm, ManagerWorkers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import Field, field_validator

from harness.dialects.agentspec.agents import Agent, AgenticComponent, SpecializedAgent
from harness.dialects.agentspec.component import ComponentField, by_title
from harness.dialects.agentspec.properties import Property

HandoffMode = Literal["never", "optional", "always"]


class Team(AgenticComponent, title="a team of agents"):
    """Base class of teams. One agent talks to the user, at first the `lead`; the others answer to agents."""

    @property
    def sends_messages(self) -> bool:
        """True if its agents ask each other."""
        return True

    @property
    def hands_off(self) -> bool:
        """True if the agent that talks to the user may hand the conversation over."""
        return False

    @property
    def members(self) -> Sequence[AgenticComponent]:
        """The components that it consists of, each once, the lead first."""
        raise NotImplementedError

    @property
    def lead(self) -> Agent:
        """The agent that talks to the user first."""
        return speaker_of(self.members[0])

    def contacts(self) -> Mapping[Agent, Mapping[str, AgenticComponent]]:
        """Return all agents of the team, each with those whom it may address, by the name that it uses."""
        raise NotImplementedError

    @cached_property
    def inputs(self) -> Mapping[str, Property]:
        """Its own inputs, and those of its members, which callers give it as well."""
        found: dict[str, Property] = {}
        for member in self.members:
            found = {**member.inputs, **found}
        return {**found, **by_title(self.declared_inputs or ())}


def speaker_of(member: AgenticComponent) -> Agent:
    """Return the agent that answers for a member of a team."""
    if isinstance(member, Team):
        return member.lead
    found = member.merged if isinstance(member, SpecializedAgent) else member
    assert isinstance(found, Agent)
    return found


_Member = Annotated[AgenticComponent, ComponentField(AgenticComponent)]


class Swarm(Team, title="a Swarm"):
    """Agents of which each may address certain others. `handoff`: whether the conversation may be handed over."""

    first_agent: _Member
    relationships: list[Annotated[list[_Member], Field(min_length=2, max_length=2)]] = Field(min_length=1)
    handoff: HandoffMode = "optional"

    @field_validator("handoff", mode="before")
    @classmethod
    def _mode_of_flag(cls, given: Any) -> Any:
        return {True: "optional", False: "never"}[given] if isinstance(given, bool) else given

    @property
    def sends_messages(self) -> bool:
        return self.handoff != "always"

    @property
    def hands_off(self) -> bool:
        return self.handoff != "never"

    @property
    def members(self) -> Sequence[AgenticComponent]:
        return list(
            dict.fromkeys([self.first_agent, *(each for pair in self.relationships for each in pair)])
        )

    def contacts(self) -> Mapping[Agent, Mapping[str, AgenticComponent]]:
        found: dict[Agent, dict[str, AgenticComponent]] = {speaker_of(each): {} for each in self.members}
        for sender, recipient in self.relationships:
            found[speaker_of(sender)][recipient.name] = recipient
        return found


class ManagerWorkers(Team, title="a ManagerWorkers"):
    """A manager, who talks to the user, and workers, who answer to the manager. A worker may manage others."""

    group_manager: _Member
    workers: list[_Member] = Field(min_length=1)

    @property
    def members(self) -> Sequence[AgenticComponent]:
        return list(dict.fromkeys([self.group_manager, *self.workers]))

    def contacts(self) -> Mapping[Agent, Mapping[str, AgenticComponent]]:
        found: dict[Agent, Mapping[str, AgenticComponent]] = {
            self.lead: {worker.name: worker for worker in self.workers}
        }
        for worker in self.workers:
            inner = worker.contacts() if isinstance(worker, Team) else {speaker_of(worker): {}}
            found = {**inner, **found}
        return found
