from typing import Optional


def saw(board: str, cuts: int = 1, at: Optional[list[float]] = None):
    """Cut a board.

    Args:
        board: Which one
    """


def _own():
    """Not a tool."""
