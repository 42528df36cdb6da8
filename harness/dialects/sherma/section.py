"""The ground all parts of a manifest stand on."""

from __future__ import annotations

from typing import Final

from pydantic import BaseModel

INTERNAL: Final = "__sherma__"
"""The field of the state that belongs to the runtime: the last error, and what is loaded of skills."""


class Section(BaseModel, extra="ignore", defer_build=True):
    """Base class of the sections of a manifest. Text that spells a number or a boolean is accepted for one, so that
    `${VAR}` can be used there.
    """


class Ref(Section, title="a reference"):
    """A reference into a registry. `version` None or `*`: the latest."""

    id: str
    version: str = "*"
