"""`recipe import|export|list`: LLooM recipes in and out of the fleet repository."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lloom_gitops.cli.output import put, put_json, tell
from lloom_gitops.model.document import Kind
from lloom_gitops.model.errors import DocumentError, UsageError

if TYPE_CHECKING:
    from lloom_gitops.codec import Parsed
    from lloom_gitops.model.errors import Finding
    from lloom_gitops.model.recipe import RecipeSpec

app = typer.Typer(no_args_is_help=True, add_completion=False, help="LLooM recipes in and out.")

_HEADER = "# yaml-language-server: $schema=../schemas/recipe.v1.schema.json\n"

Out = Annotated[str | None, typer.Option("--out", metavar="FILE", help="Where to; - is stdout.")]
Force = Annotated[bool, typer.Option("--force", help="Replace the file if it is there already.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Write nothing; show what would be written.")]


@app.command("import")
def import_recipe(
    ctx: typer.Context,
    file: Annotated[Path, typer.Argument(metavar="FILE.json", help="A LLooM recipe.")],
    out: Out = None,
    dry_run: DryRun = False,
    force: Force = False,
) -> None:
    """Turn a LLooM recipe into recipes/<id>.yaml, without losing a field.

    What our Recipe has a field for moves there. The rest stays under spec.lloom, with $recipe where a moved value
    stood; `recipe export` gives the whole recipe back.

    \b
    Example:
      lloom-gitops recipe import linux-nvidia-qwen3-embedding-4b-vllm.json
    """
    from lloom_gitops.catalog.lloom_recipe import from_lloom
    from lloom_gitops.codec.json_text import parse_json

    parsed = parse_json(_read(file), str(file))
    if parsed.findings:
        raise DocumentError(code=parsed.findings[0].code, message=f"{file} is not read", findings=parsed.findings)
    document = _located(parsed, lambda: from_lloom(parsed.value))
    text = _yaml_of(document, parsed)
    target = out or str(ctx.obj.repo / "recipes" / f"{document['metadata']['name']}.yaml")
    _deliver(ctx, target, text, {"recipe": _exact(document)}, dry_run=dry_run, force=force)


@app.command("export")
def export_recipe(
    ctx: typer.Context,
    recipe: Annotated[str, typer.Argument(metavar="ID|FILE", help="A recipe's id, or its file.")],
    out: Out = None,
    dry_run: DryRun = False,
    force: Force = False,
) -> None:
    """Give a recipe back as a LLooM recipe (JSON): an imported one equal to what it came from, edits included.

    \b
    Example:
      lloom-gitops recipe export linux-nvidia-qwen3-embedding-4b-vllm --out recipe.json
    """
    from lloom_gitops.catalog.lloom_recipe import to_lloom
    from lloom_gitops.codec import load_document

    file = Path(recipe) if recipe.endswith((".yaml", ".yml")) else ctx.obj.repo / "recipes" / f"{recipe}.yaml"
    parsed = load_document(Kind.RECIPE, _read(file), _name(ctx, file)).parsed
    lloom = _located(parsed, lambda: to_lloom(parsed.value))
    text = json.dumps(lloom, indent=2, ensure_ascii=False)
    if not text.replace("\n", "").isprintable():
        text = json.dumps(lloom, indent=2)
    _deliver(ctx, out or "-", text + "\n", {"recipe": lloom}, dry_run=dry_run, force=force)


@app.command("list")
def list_recipes(ctx: typer.Context) -> None:
    """List the recipes of the fleet repository: id, nodes, memory of a node, and the models.

    \b
    Example:
      lloom-gitops recipe list
    """
    from lloom_gitops.codec import read_document

    findings: list[Finding] = []
    specs: dict[str, RecipeSpec] = {}
    for file in sorted((ctx.obj.repo / "recipes").glob("*.yaml")):
        document, faults = read_document(Kind.RECIPE, _read(file), _name(ctx, file))
        findings += faults
        if document is not None and not faults:
            specs[document.metadata.name] = document.spec
    if ctx.obj.json:
        put_json({"recipes": [_row(name, spec) for name, spec in specs.items()], "findings": findings})
    elif specs:
        put(_table([_row(name, spec) for name, spec in specs.items()]))
    else:
        tell("no recipes in recipes/: `lloom-gitops recipe import FILE.json` makes one of a LLooM recipe")
    if findings and ctx.obj.json:
        raise typer.Exit(int(DocumentError.exit_code))
    if findings:
        raise DocumentError(code=findings[0].code, message="some recipes are left out", findings=findings)


def _row(name: str, spec: RecipeSpec) -> dict[str, Any]:
    from lloom_gitops.model.recipe import processes

    return {
        "id": name,
        "version": spec.version,
        "nodes": spec.requirements.nodes,
        "memoryGb": [process.memory_gb for process in processes(spec)],
        "models": [{"gatewayModel": model.gateway_model, "kind": model.kind} for model in spec.models],
    }


def _table(rows: list[dict[str, Any]]) -> str:
    from lloom_gitops.render.clean import visible
    from lloom_gitops.render.layout import table

    cells = [["ID", "VERSION", "NODES", "GB", "MODELS"]]
    for row in rows:
        memory = ", ".join("unknown" if need is None else f"{need:f}" for need in dict.fromkeys(row["memoryGb"]))
        models = ", ".join(f"{model['gatewayModel']} ({model['kind']})" for model in row["models"])
        cells.append([visible(row["id"]), str(row["version"]), str(row["nodes"]), memory, visible(models)])
    # Plain lines when nobody looks: one recipe a line, whatever its length.
    width = 110 if sys.stdout.isatty() else 100_000
    return "\n".join(line for block in table(cells, width) for line in block)


def _yaml_of(document: dict[str, Any], source: Parsed) -> str:
    """The YAML of an imported recipe, once it is sure that reading it gives the LLooM recipe back."""
    from lloom_gitops.catalog.lloom_recipe import to_lloom
    from lloom_gitops.codec import dump, read_document

    try:
        text = _HEADER + dump(_exact(document), keep_order=True)
    except ValueError as error:
        raise _lost(source, str(error)) from error
    written, faults = read_document(Kind.RECIPE, text.encode(), f"the YAML of {source.file}")
    if written is None or faults:
        raise DocumentError(code="recipeNotKept", message=f"{source.file} has no YAML of ours", findings=faults)
    if to_lloom(written.parsed.value) != source.value:
        raise _lost(source, "a number of it has more digits than YAML keeps")
    return text


def _lost(source: Parsed, why: str) -> DocumentError:
    finding = source.finding("recipeNotKept", "", f"the recipe can't be kept whole: {why}")
    return DocumentError(code="recipeNotKept", message=f"{source.file} is not imported", findings=[finding])


def _exact(value: Any) -> Any:
    """Floats as ints where they are whole, else as the decimals that they are written as: what our YAML holds."""
    if isinstance(value, dict):
        return {name: _exact(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [_exact(inner) for inner in value]
    if isinstance(value, float):
        return int(value) if value.is_integer() else Decimal(repr(value))
    return value


def _located(parsed: Parsed, work: Callable[[], Any]) -> Any:
    """What `work` gives; its findings get their line and column in the file that it is about."""
    try:
        return work()
    except DocumentError as error:
        found = []
        for fault in error.findings:
            rest = {"wanted": fault.wanted, "found": fault.found, "hint": fault.hint}
            found.append(parsed.finding(fault.code, fault.pointer, fault.message, **rest))
        message = f"{parsed.file}: {error.message}"
        raise DocumentError(code=error.code, message=message, hint=error.hint, findings=found) from error


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise UsageError(code="noSuchFile", message=f"{file}: {error.strerror or 'not readable'}") from error


def _name(ctx: typer.Context, file: Path) -> str:
    """A file's name in findings: relative to the repository where it lies there."""
    inside = file.resolve().is_relative_to(ctx.obj.repo)
    return file.resolve().relative_to(ctx.obj.repo).as_posix() if inside else str(file)


def _deliver(ctx: typer.Context, out: str, text: str, payload: dict[str, Any], *, dry_run: bool, force: bool) -> None:
    """Put the text where it is wanted; never over another file unless told to."""
    if out == "-":
        put_json(payload) if ctx.obj.json else put(text)
        return
    target = Path(out)
    shown = _name(ctx, target)
    there = target.read_bytes() if target.is_file() else None
    same = there == text.encode()
    if (there is not None or target.exists()) and not same and not force:
        hint = "--force replaces it, --out FILE writes elsewhere, --out - shows it"
        raise UsageError(code="fileExists", message=f"{shown} is there already, with other content", hint=hint)
    if not same and not dry_run:
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8", newline="\n")
        except OSError as error:
            raise UsageError(code="notWritable", message=f"{shown}: {error.strerror or error}") from error
    if ctx.obj.json:
        put_json({"file": shown, "written": not same and not dry_run, **payload})
    elif dry_run:
        put(text)
    did = "is up to date" if same else "would be written" if dry_run else "written"
    tell(f"{shown} {did}")
