"""The module that agency files import as `leafmesh`. It is ours; the package is never looked at.

It offers what the documents define: decorators, errors, a logger, and of the SDK what marks functions. Other public
names that they mention can be imported, and refuse to be called. It is found only while agency files are imported,
and while their functions and tools run.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, Final, NoReturn

from harness.dialects.leafmesh import decorators
from harness.dialects.leafmesh.connector_document import CONNECTORS
from harness.dialects.leafmesh.registered_tool import global_tool
from harness.errors import HarnessError


class NotInStandIn(HarnessError):
    """A part of the LeafMesh SDK that is used where only the stand-in is."""

    code = "not-in-stand-in"

    def __init__(self, what: str) -> None:
        super().__init__(
            f"{what} is a part of the LeafMesh SDK that does not run here: the harness runs the mesh"
        )


class LeafMeshError(Exception):
    """Base class of the SDK's errors."""


class YieldContractFailure(LeafMeshError):
    """An output that does not fit the `yields` of its agent."""


class LeafMeshLogger:
    """A logger of the standard library; fields may be given by keyword."""

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
    """The SDK as agency files see it: what is registered is kept, and nothing can be started."""

    def __init__(self, *_given: Any, **_named: Any) -> None:
        self.human_handlers: dict[str, Any] = {}

    @classmethod
    def from_yaml(cls, *_given: Any, **_named: Any) -> LeafMesh:
        """The SDK for a mesh file, which is not read."""
        return cls()

    def intelligence(self, *given: Any) -> Any:
        """Mark the function of an agent: that of its own name."""
        return given[0] if given and callable(given[0]) else lambda function: function

    def register_human_handler(self, agent: str, handler: Any) -> None:
        """Keep the handler. In a run the scenario answers for people."""
        self.human_handlers[agent] = handler

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return _refusing(f"LeafMesh.{name}")


def _refusing(what: str) -> Callable[..., NoReturn]:
    def refuse(*_given: Any, **_named: Any) -> NoReturn:
        raise NotInStandIn(what)

    return refuse


def _processor_of(integration: str) -> Callable[..., Any]:
    """A helper such as `zapier(...)`, whose result is a processor for `@pre_compose`."""

    def helper(*_given: Any, **_named: Any) -> Any:
        return _refusing(f"{integration}(…) as a processor of @pre_compose")

    helper.__name__ = integration
    return helper


class _Module(ModuleType):
    """The module itself. A class of the SDK that is not documented is made when it is first asked for."""

    def __getattr__(self, name: str) -> Any:
        if not may_have(name):
            raise AttributeError(f"module 'leafmesh' has no attribute '{name}'", name=name, obj=self)
        setattr(self, name, _placeholder(name))
        return self.__dict__[name]


def may_have(name: str) -> bool:
    """True if the stand-in offers this name. Any name of a class is: functions are annotated with them."""
    return name in NAMES or _CLASS.fullmatch(name) is not None


def _placeholder(name: str) -> type:
    """A class of the SDK that cannot be made, or an error, which can be."""
    if name.endswith(("Error", "Exception", "Failure")):
        return type(name, (LeafMeshError,), {"__module__": "leafmesh"})
    refuse = _refusing(f"leafmesh.{name}")
    return type(name, (), {"__new__": lambda _class, *given, **named: refuse(), "__module__": "leafmesh"})


_CLASS: Final = re.compile(r"[A-Z]\w*[a-z]\w*")
_OFFERED: Final[tuple[Any, ...]] = (
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
    *map(_processor_of, (framework for framework in CONNECTORS if framework != "custom")),
)
_MEMBERS: Final = {**{each.__name__: each for each in _OFFERED}, "tool": global_tool}
NAMES: Final = tuple(_MEMBERS)
"""The names that the stand-in offers, beside those of undocumented classes."""


def _stand_in() -> ModuleType:
    module = _Module("leafmesh", __doc__)
    module.__spec__ = ModuleSpec("leafmesh", None, is_package=True)
    vars(module).update(_MEMBERS, __path__=[], __all__=[*NAMES])
    return module


STAND_IN: Final[Mapping[str, ModuleType]] = {"leafmesh": _stand_in()}
