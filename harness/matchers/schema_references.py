"""References (`$ref`) of a JSON Schema that cannot be resolved. A run that validates with one would fail."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from harness.matchers.schema_flaws import schemas_inside

NO_TARGET: Final = "leads nowhere"
EXTERNAL: Final = "leads out of the schema, and nothing is fetched"
_KEYWORDS: Final = ("$ref", "$dynamicRef")


class UnresolvedReference(NamedTuple):
    """A reference that does not lead to a schema; `path` leads to the reference."""

    path: tuple[str | int, ...]
    reference: str
    why: str


def unresolved_references(schema: Any) -> Iterator[UnresolvedReference]:
    """Yield the references in a valid schema that cannot be resolved, or that form a circle. Nothing is fetched."""
    from referencing import Registry
    from referencing.jsonschema import DRAFT202012

    root = Registry().resolver_with_root(DRAFT202012.create_resource(schema))
    resolvers: dict[tuple[str | int, ...], Any] = {(): root}
    for path, inside in schemas_inside(schema):
        enclosing = next(resolvers[path[:end]] for end in range(len(path), -1, -1) if path[:end] in resolvers)
        resolvers[path] = enclosing.in_subresource(DRAFT202012.create_resource(inside)) if path else enclosing
        for keyword in _KEYWORDS:
            reference = inside.get(keyword)
            if isinstance(reference, str) and (why := _fault(inside, keyword, resolvers[path])):
                yield UnresolvedReference((*path, keyword), reference, why)


def _fault(schema: Any, keyword: str, resolver: Any) -> str:
    """Return the reason why a reference cannot be resolved; empty if it can."""
    from referencing.exceptions import Unresolvable

    seen = [schema]
    while isinstance(schema.get(keyword), str):
        reference = schema[keyword]
        try:
            found = resolver.lookup(reference)
        except (Unresolvable, ValueError):
            return NO_TARGET if reference.startswith("#") else EXTERNAL
        schema, resolver = found.contents, found.resolver
        if isinstance(schema, bool):
            break
        if not isinstance(schema, dict):
            return "leads to something that is not a schema"
        if any(schema is earlier for earlier in seen):
            return "leads in a circle"
        seen.append(schema)
    return ""
