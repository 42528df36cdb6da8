def saw(board: str, cuts: int = 1, at: list[float] | None = None) -> str:
    """Cut a board.

    Args:
        board: Which one
    """
    return f"{board}, {cuts}, {at}"


def _own() -> None:
    """Not a tool."""
