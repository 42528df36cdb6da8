"""The stand-in module that agency files import as `leafmesh`; an installed package of that name is never used.

It has what the documentation defines: decorators, errors, a logger, and those parts of the SDK that mark
functions. Other public names can be imported, but raise an error when called. The module is visible only
while agency files are imported and while their functions and tools run.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final, NoReturn

from harness.dialects.leafmesh import decorators
from harness.dialects.leafmesh.decorators import Function, register
from harness.dialects.leafmesh.integrations import HELPERS, integration_helper
from harness.dialects.leafmesh.registered_tool import global_tool
from harness.errors import HarnessError


class NotInStandIn(HarnessError):
    """A part of the LeafMesh SDK was used that the stand-in does not implement."""

    code = "not-in-stand-in"

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what} is a part of the LeafMesh SDK that does not run here: the harness runs the mesh"
        )


class LeafMeshError(Exception):
    """Base class of the SDK's errors."""


class YieldContractFailure(LeafMeshError):
    """An output does not match the `yields` of its agent."""


class LeafMeshLogger:
    """A logger of the standard library; keyword arguments are logged as fields."""

    def __init__(self, name: str = "leafmesh", *_given: Any, **_named: Any) -> None:
        self._logger = logging.getLogger(name)

    def __getattr__(self, name: str) -> Callable[..., None]:
        level = logging.getLevelNamesMapping().get(name.upper(), logging.INFO)
        if name.startswith("_"):
            raise AttributeError(name)

        def write(message: Any = "", *given: Any, **fields: Any) -> None:
            known = {key: fields.pop(key) for key in ("exc_info", "extra", "stack_info") if key in fields}
            shown = "".join(f" {key}={value!r}" for key, value in fields.items())
            self._logger.log(level, f"{message}{shown}" if shown else message, *given, **known)

        return write


class LeafMesh:
    """The SDK object in agency files: registrations are accepted, everything else refuses to run."""

    def __init__(self, *_given: Any, **_named: Any) -> None:
        self.human_handlers: dict[str, Any] = {}

    @classmethod
    def from_yaml(cls, *_given: Any, **_named: Any) -> LeafMesh:
        """Return an SDK object. The mesh file is not read."""
        return cls()

    def __call__(self, agent_name: str) -> Function:
        """Register the function of an agent: `@sdk("greeter_agent")`."""
        return register(agent_name)

    def intelligence(self, agent: str | Function | None = None) -> Any:
        """Register the function of an agent; without an argument, the function's name decides which."""
        if isinstance(agent, str):
            return register(agent)
        return agent if callable(agent) else lambda function: function

    def register_human_handler(self, agent: str, handler: Any) -> None:
        """Keep the handler. It is never called: the scenario answers for people."""
        self.human_handlers[agent] = handler

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return _raise_on_call(f"LeafMesh.{name}")


def _raise_on_call(what: str) -> Callable[..., NoReturn]:
    def refuse(*_given: Any, **_named: Any) -> NoReturn:
        raise NotInStandIn(what)

    return refuse


class _Module(ModuleType):
    """The stand-in module. Undocumented classes of the SDK are created on first access."""

    def __getattr__(self, name: str) -> Any:
        if not has_name(name):
            raise AttributeError(f"module 'leafmesh' has no attribute '{name}'", name=name, obj=self)
        setattr(self, name, _placeholder(name))
        return self.__dict__[name]


def has_name(name: str) -> bool:
    """True if the stand-in has this name. Every class name exists, since annotations may use it."""
    return name in NAMES or _CLASS.fullmatch(name) is not None


def _placeholder(name: str) -> type:
    """Create a class of the SDK: an error that can be raised, or a class that cannot be instantiated."""
    if name.endswith(("Error", "Exception", "Failure")):
        return type(name, (LeafMeshError,), {"__module__": "leafmesh"})
    refuse = _raise_on_call(f"leafmesh.{name}")
    return type(name, (), {"__new__": lambda _class, *given, **named: refuse(), "__module__": "leafmesh"})


_CLASS: Final = re.compile(r"[A-Z]\w*[a-z]\w*")
_DEFINED: Final[tuple[Any, ...]] = (
    decorators.pre_compose,
    decorators.chain,
    decorators.chain_with_results,
    decorators.conditional_chain,
    decorators.compose,
    global_tool,
    LeafMesh,
    LeafMeshError,
    LeafMeshLogger,
    YieldContractFailure,
    *map(integration_helper, HELPERS),
)
_MEMBERS: Final = {**{each.__name__: each for each in _DEFINED}, "tool": global_tool}
NAMES: Final = tuple(_MEMBERS)
"""The names that the stand-in defines; undocumented classes come in addition."""


def _stand_in() -> ModuleType:
    module = _Module("leafmesh", __doc__)
    module.__spec__ = ModuleSpec("leafmesh", None, is_package=True)
    vars(module).update(_MEMBERS, __path__=[], __all__=[*NAMES])
    return module


STAND_IN: Final[Mapping[str, ModuleType]] = {"leafmesh": _stand_in()}
