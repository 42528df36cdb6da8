"""A tool of the library, and what a scenario puts in its place."""


def shelf_of(title: str) -> str:
    """The shelf a book stands on."""
    return f"{title}: shelf {len(title)}"


def empty_shelf(title: str) -> str:
    """No book is anywhere."""
    return f"{title} is lost"
