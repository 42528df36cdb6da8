"""A tool of the library, and what a scenario puts in its place."""

from typing import Any


def shelf_of(title: str) -> str:
    """The shelf a book stands on."""
    return f"{title}: shelf {len(title)}"


def empty_shelf(title: str) -> str:
    """No book is anywhere."""
    return f"{title} is lost"


def names_the_book(run: Any, title: str) -> tuple[bool, str]:
    """True if the state has the title."""
    return run.state["book"]["title"] == title, f"the book is not {title}"
