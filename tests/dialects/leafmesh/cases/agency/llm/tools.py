from leafmesh import global_tool


@global_tool(name="sand", description="Sand a board", category="wood", timeout_seconds=3)
def sand(board: str) -> str:
    return f"{board} is smooth"


@global_tool(name="varnish", description="Varnish", category="wood", allowed_agents=["bench"])
def varnish(board: str) -> str:
    return "varnished"


@global_tool(name="weld", description="Weld", category="metal")
def weld() -> str:
    raise ValueError("no gas left")
