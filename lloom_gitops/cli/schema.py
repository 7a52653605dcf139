"""`schema`: the JSON Schemas of the documents."""

from __future__ import annotations

from typing import Annotated

import typer

from lloom_gitops.cli.context import Context
from lloom_gitops.cli.output import put, put_json


def schema(
    ctx: typer.Context,
    kind: Annotated[str | None, typer.Argument(help="A kind, e.g. Pool; default: list them.")] = None,
) -> None:
    """Print the JSON Schema of a kind of document, or list the kinds with their files.

    \b
    Examples:
      lloom-gitops schema
      lloom-gitops schema Pool > schemas/pool.v1.schema.json
    """
    from lloom_gitops.codec.schemas import schema_path
    from lloom_gitops.codec.wording import nearest
    from lloom_gitops.model.document import Kind
    from lloom_gitops.model.errors import UsageError

    context: Context = ctx.obj
    if kind is None:
        paths = {each.value: f"schemas/{schema_path(each).name}" for each in Kind}
        if context.json:
            put_json({"kinds": paths})
        else:
            put("\n".join(f"{name:<14} {path}" for name, path in paths.items()))
        return
    named = {each.value.lower(): each for each in Kind}.get(kind.lower())
    if named is None:
        raise UsageError(
            code="unknownKind",
            message=f"{kind!r} is no kind of document",
            hint=nearest(kind, [each.value for each in Kind]) or "`lloom-gitops schema` lists them",
        )
    put(schema_path(named).read_text("utf-8"))
