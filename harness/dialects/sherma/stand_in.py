"""A stand-in for the package `sherma`, used if that is not installed.

Modules of hooks, tools and agents import from many places of the package: `from sherma.hooks.executor import
BaseHookExecutor`, `from sherma.registry.bundle import RegistryBundle`. `stand_in_members` implements the names
that hooks and agents need. Every other public name can be imported, subclassed and used in annotations, but
raises an error when called. spec: "Hooks", "Using a declarative agent".
"""

from __future__ import annotations

import importlib.util
import sys
from types import ModuleType
from typing import Any, NoReturn

from harness.dialects.sherma.published_names import MODULES
from harness.errors import HarnessError


class NotInStandIn(HarnessError):
    """A part of sherma's runtime was used that the stand-in does not implement."""

    code = "not-in-stand-in"


class _Module(ModuleType):
    """A module of the stand-in. Its members are created on first access."""

    def __getattr__(self, name: str) -> Any:
        if name not in self.__dict__.get("__all__", ()):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}", name=name, obj=self)
        from harness.dialects.sherma.stand_in_members import implementation

        found = implementation(self.__name__, name)
        member = _placeholder(self.__name__, name) if found is None else found
        setattr(self, name, member)
        return member


def offer_stand_in() -> None:
    """Make the public modules of sherma importable, unless sherma is installed."""
    if "sherma" in sys.modules or importlib.util.find_spec("sherma") is not None:
        return
    for name, members in MODULES.items():
        module = _Module(name, __doc__)
        module.__path__ = []
        module.__all__ = members.split()  # type: ignore[attr-defined]
        sys.modules[name] = module
        parent, _, child = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], child, module)


def _placeholder(module: str, name: str) -> type:
    """Return a class that stands for a class or function of sherma that is not implemented."""

    def refuse(_class: type, *_given: Any, **_named: Any) -> NoReturn:
        raise NotInStandIn(
            f"{module}.{name} is a part of sherma that does not run here; it does where sherma is installed"
        )

    def of(itself: type, _item: object) -> type:
        return itself

    return type(name, (), {"__new__": refuse, "__module__": module, "__class_getitem__": of})
