"""The generated halves of the reference pages: what the program and the schemas say of themselves."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from lloom_gitops.cli.registry import application
from lloom_gitops.codec.schemas import schema
from lloom_gitops.model.document import Kind
from lloom_gitops.model.errors import LloomGitopsError

MARK = "<!-- Below this line the page is made by `make golden`: change the source, not the page. -->"
REPO = Path(__file__).resolve().parents[2]
DOCS = REPO / "docs"
PACKAGE = REPO / "lloom_gitops"


def commands(group: Any = None, path: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    """Each command that does something, by its path of words, in the order of `--help`."""
    group = group or application()
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        if hasattr(command, "list_commands"):
            yield from commands(command, (*path, name))
        else:
            yield " ".join((*path, name)), command


def commands_page() -> str:
    """A section a command: what it does, its example, its arguments and options."""
    return "\n".join(_command(name, command) for name, command in commands())


def _command(name: str, command: Any) -> str:
    about, _, example = (command.help or "").replace("\f", "").partition("\b")
    lines = [f"## {name}", "", " ".join(about.split())]
    shown = [line.strip() for line in example.strip().splitlines()[1:] if line.strip()]
    if shown:
        lines += ["", "```sh", *shown, "```"]
    rows = [_option(each) for each in command.params if getattr(each, "help", None) and not each.hidden]
    if rows:
        lines += ["", "| option | does |", "| --- | --- |", *rows]
    return "\n".join(lines) + "\n"


def _option(option: Any) -> str:
    if option.param_type_name == "argument":
        word = f"`{(option.metavar or option.name).upper()}`"
    else:
        value = f" {option.metavar}" if option.metavar else "" if option.is_flag or option.count else " VALUE"
        word = f"`{', '.join(option.opts)}{value}`".replace("|", "\\|")
    return f"| {word} | {_cell(option.help)} |"


def documents_page() -> str:
    """A section a kind: what it is, and each field with its type and meaning."""
    return "\n".join(_kind(kind) for kind in Kind)


def _kind(kind: Kind) -> str:
    whole = schema(kind)
    fields = _fields(whole, whole["properties"]["spec"])
    rows = [f"| `{path}` | {words} | {_cell(says)} |" for path, words, says in fields]
    titles = ["| field of `spec` | type | meaning |", "| --- | --- | --- |"]
    return "\n".join([f"## {kind.value}", "", whole["description"], "", *titles, *rows]) + "\n"


def _fields(root: dict[str, Any], node: dict[str, Any], path: str = "") -> Iterator[tuple[str, str, str]]:
    node = _resolved(root, node)
    for name, value in node.get("properties", {}).items():
        yield from _field(root, value, f"{path}.{name}".lstrip("."), name in node.get("required", ()))
    inner = node.get("additionalProperties")
    if isinstance(inner, dict):
        yield from _field(root, inner, f"{path}.NAME".lstrip("."), False)
    if "items" in node:
        yield from _field(root, node["items"], f"{path}[]", False)


def _field(root: dict[str, Any], value: dict[str, Any], path: str, required: bool) -> Iterator[tuple[str, str, str]]:
    says = value.get("description")
    value = _resolved(root, value)
    if not path.endswith(("[]", "NAME")) or _scalar(value):
        yield path, _type(value) + (", required" if required else ""), says or value.get("description", "")
    yield from (each for each in _fields(root, value, path) if path.count(".") < 4)


def _scalar(node: dict[str, Any]) -> bool:
    return "properties" not in node and "additionalProperties" not in node and "items" not in node


def _resolved(root: dict[str, Any], node: dict[str, Any]) -> dict[str, Any]:
    while "$ref" in node:
        target: Any = root
        for token in node["$ref"].removeprefix("#/").split("/"):
            target = target[token]
        node = {**target, **{name: value for name, value in node.items() if name != "$ref"}}
    return node


def _type(node: dict[str, Any]) -> str:
    if "enum" in node:
        return " ".join(f"`{word}`" for word in node["enum"] if word is not None)
    if "const" in node:
        return f"`{node['const']}`"
    types = node.get("type", "any")
    listed = [types] if isinstance(types, str) else types
    return " or ".join({"object": "map", "array": "list"}.get(word, word) for word in listed)


@dataclass(frozen=True, order=True)
class Code:
    """A code of a refusal or a note as the source has it; what is only known when it happens is shown as `…`."""

    code: str
    exit: int | None
    says: str
    hint: str


def codes() -> list[Code]:
    """Every refusal that the program can end with, and every note that a plan can carry, by code."""
    exits = {kind.__name__: int(kind.exit_code) for kind in _kinds(LloomGitopsError)}
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for call in ast.walk(ast.parse(path.read_text("utf-8"))):
            name = call.func.id if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) else ""
            if isinstance(call, ast.Call) and (name in exits or name == "Note"):
                words = {word.arg: _said(word.value) for word in call.keywords}
                if re.fullmatch(r"[a-z][A-Za-z]+", words.get("code", "")):
                    says = words.get("message" if name in exits else "says", "…")
                    code = Code(words["code"], exits.get(name), says, words.get("hint", ""))
                    found.setdefault((code.code, code.exit), code)
    return sorted(found.values(), key=lambda code: (code.code, code.exit or 0))


def _kinds(kind: type[LloomGitopsError]) -> Iterator[type[LloomGitopsError]]:
    import lloom_gitops.gitstore.errors  # noqa: F401  (its classes are found through their parents)

    yield kind
    for below in kind.__subclasses__():
        yield from _kinds(below)


def _said(node: ast.expr) -> str:
    """A text of the source, with `…` for what is put in."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(_said(part) for part in parts)
        case ast.BinOp(left=left, right=right):
            return _said(left) + _said(right)
    return "…"


def codes_page() -> str:
    """A table of refusals with their exit code, and one of notes."""
    refusals = [f"| `{c.code}` | {c.exit} | {_cell(c.says)} | {_cell(c.hint)} |" for c in codes() if c.exit is not None]
    notes = [f"| `{c.code}` | {_cell(c.says)} |" for c in codes() if c.exit is None]
    return "\n".join(
        [
            *("## Refusals", "", "| code | exit | says | what to do |", "| --- | --- | --- | --- |", *refusals, ""),
            *("## Notes of a plan", "", "| code | says |", "| --- | --- |", *notes, ""),
        ]
    )


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip().replace("|", "\\|")
