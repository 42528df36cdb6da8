"""Base types of the models of a manifest."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Final

from pydantic import BaseModel, BeforeValidator

from harness.source.models import Mistake, describe, mistaken

INTERNAL_STATE_KEY: Final = "__sherma__"
"""The state field of the runtime: the last error, loaded skills and their tools."""


class Section(BaseModel, extra="ignore", defer_build=True):
    """Base class of the models. Text that spells a number or boolean is accepted as one, for `${VAR}`."""


class Ref(Section, title="a reference"):
    """A reference into a registry. Version `*` is the latest."""

    main_key: ClassVar[str] = "id"

    id: str
    version: str = "*"


def _reject_containers(written: Any) -> Any:
    if isinstance(written, (list, dict)):
        text = f"an expression must be text, not {describe(written)}"
        raise mistaken(Mistake(text, code="wrong-type", hint="quote it"))
    return written


Expression = Annotated[str, BeforeValidator(_reject_containers)]
"""The source text of a CEL expression."""
