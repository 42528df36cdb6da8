"""A stand-in for the package `sherma`, where it is not installed.

Hook modules and agents say `from sherma.hooks import BaseHookExecutor` and `from sherma import
DeclarativeAgent`; with this they load without the runtime they were written for. spec: "Hooks",
"Using a declarative agent" (yaml_path, yaml_content, config, base_path, hooks).
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from harness.dialects.sherma.hooks import POINTS, BaseHookExecutor


class DeclarativeConfig:
    """A manifest that is read before its agent is made."""

    def __init__(self, *, yaml_path: Any = None, yaml_content: str | None = None) -> None:
        self.yaml_path = yaml_path
        self.yaml_content = Path(yaml_path).read_text(encoding="utf-8") if yaml_path else yaml_content


class DeclarativeAgent:
    """An agent by its manifest. Settings of the original runtime that have no meaning here are ignored."""

    def __init__(
        self,
        *,
        id: str,
        version: str = "*",
        yaml_path: Any = None,
        yaml_content: str | None = None,
        config: DeclarativeConfig | None = None,
        base_path: Any = None,
        hooks: Any = (),
        **_ignored: Any,
    ) -> None:
        self.id, self.version, self.base_path, self.hooks = id, version, base_path, list(hooks)
        self.yaml_path = yaml_path
        self.yaml_content = config.yaml_content if config is not None else yaml_content


def offer_stand_in() -> None:
    """Make `sherma`, `sherma.hooks` and `sherma.hooks.types` importable, unless sherma is installed."""
    if "sherma" in sys.modules or importlib.util.find_spec("sherma") is not None:
        return
    package = ModuleType("sherma", __doc__)
    package.__path__ = []
    hooks = ModuleType("sherma.hooks", "The hook interface of sherma.")
    for interface in (BaseHookExecutor, *POINTS.values()):
        setattr(hooks, interface.__name__, interface)
        setattr(package, interface.__name__, interface)
    contents = {
        "hooks": hooks,
        "DeclarativeAgent": DeclarativeAgent,
        "DeclarativeConfig": DeclarativeConfig,
        "load_declarative_config": DeclarativeConfig,
    }
    for name, value in contents.items():
        setattr(package, name, value)
    hooks.HookExecutor = BaseHookExecutor  # type: ignore[attr-defined]
    sys.modules.update({"sherma": package, "sherma.hooks": hooks, "sherma.hooks.types": hooks})
