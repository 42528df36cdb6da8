"""The ground all parts of a manifest stand on."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A part of a manifest. No value is coerced, except a whole number where a float is asked for."""

    model_config = ConfigDict(extra="ignore", strict=True)


class Ref(Section):
    """A reference into a registry. `version` None or `*`: the latest."""

    model_config = ConfigDict(title="a reference")

    id: str
    version: str = "*"
