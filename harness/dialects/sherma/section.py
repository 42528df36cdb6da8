"""The ground all parts of a manifest stand on."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final

from pydantic import BaseModel, BeforeValidator

from harness.source.models import Mistake, describe, mistaken

INTERNAL: Final = "__sherma__"
"""The field of the state that belongs to the runtime: the last error, and what is loaded of skills."""


class Section(BaseModel, extra="ignore", defer_build=True):
    """Base class of the sections of a manifest. Text that spells a number or a boolean is accepted for one, so that
    `${VAR}` can be used there.
    """


class Ref(Section, title="a reference"):
    """A reference into a registry. `version` None or `*`: the latest."""

    main_key: ClassVar[str] = "id"

    id: str
    version: str = "*"


def _unquoted(written: Any) -> Any:
    if isinstance(written, (list, dict)):
        text = f"an expression is text, and this is {describe(written)}"
        raise mistaken(Mistake(text, code="wrong-type", hint="quote it"))
    return written


Expression = Annotated[str, BeforeValidator(_unquoted)]
"""The text of a CEL expression."""
