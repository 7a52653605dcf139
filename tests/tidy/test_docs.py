"""The docs say what the program does: no command, option, field, refusal or note without its line."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from lloom_gitops.cli.registry import available

from .reference import DOCS, MARK, REPO, codes, codes_page, commands, commands_page, documents_page

PAGES = {"cli.md": commands_page, "documents.md": documents_page, "codes.md": codes_page}


@pytest.mark.parametrize("name", PAGES)
def test_golden_reference_page(name: str) -> None:
    path = DOCS / "reference" / name
    written, mark, _ = path.read_text("utf-8").partition(MARK)
    assert mark, f"{path} lost the line that parts what people write from what is made"
    whole = f"{written}{MARK}\n\n{PAGES[name]()}"
    if os.environ.get("GOLDEN") == "write":
        path.write_text(whole, "utf-8")
    assert path.read_text("utf-8") == whole, "run `make golden`"


def test_every_command_has_its_section() -> None:
    page = (DOCS / "reference/cli.md").read_text("utf-8")
    sections = set(re.findall(r"^## (.+)$", page, re.MULTILINE))
    assert {name for name, _ in commands()} <= sections
    assert {section.split()[0] for section in sections if section.split()[0] in available()} == set(available())


def test_a_hint_names_only_commands_that_there_are() -> None:
    sources = [*(REPO / "lloom_gitops").rglob("*.py"), *DOCS.rglob("*.md"), REPO / "README.md"]
    named = {
        (word, path.relative_to(REPO).as_posix())
        for path in sources
        for word in re.findall(r"`lloom-gitops ([a-z]+)", path.read_text("utf-8"))
    }
    assert {name for name, _ in named} & {"plan", "inventory"}
    assert not [row for row in sorted(named) if row[0] not in available()]


def test_refusals_are_found_in_the_source() -> None:
    found = {code.code: code for code in codes()}
    assert found["whatIfWritten"].exit == 2
    assert found["gitMissing"].says == "there is no `git` command"
    assert found["noInventory"].exit == 5
    assert found["headLost"].exit is None


LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(#[^)\s]*)?\)")


def broken_links(page: Path, text: str) -> list[str]:
    targets = [match[1] for match in LINK.finditer(text) if "://" not in match[1]]
    return [target for target in targets if not (page.parent / target).exists()]


@pytest.mark.parametrize("page", sorted(REPO.glob("*.md")) + sorted(DOCS.rglob("*.md")), ids=lambda path: path.name)
def test_links_lead_somewhere(page: Path) -> None:
    assert broken_links(page, page.read_text("utf-8")) == []


def test_a_broken_link_is_found() -> None:
    assert broken_links(DOCS / "x.md", "[a](reference/cli.md) [b](nowhere.md)") == ["nowhere.md"]


EXAMPLES = re.compile(r"^(?:\$ )?lloom-gitops ([a-z].*)$", re.MULTILINE)


def unknown_options(text: str) -> list[str]:
    """Commands and options in shell blocks that the program does not have."""
    known = {name: {opt for each in command.params for opt in each.opts} for name, command in commands()}
    wrong = []
    for block in re.findall(r"```(?:sh|console|bash)\n(.*?)```", text, re.DOTALL):
        for line in EXAMPLES.findall(block):
            words = line.split("#")[0].split()
            name = next(
                (
                    known_name
                    for known_name in sorted(known, key=len, reverse=True)
                    if " ".join(words).startswith(known_name)
                ),
                None,
            )
            if name is None:
                wrong.append(line)
                continue
            options = {word.split("=")[0] for word in words if word.startswith("--")}
            wrong += [f"{name} {option}" for option in sorted(options - known[name] - {"--help"})]
    return wrong


@pytest.mark.parametrize("page", sorted(REPO.glob("*.md")) + sorted(DOCS.rglob("*.md")), ids=lambda path: path.name)
def test_examples_are_commands_that_exist(page: Path) -> None:
    assert unknown_options(page.read_text("utf-8")) == []


def test_an_example_that_can_not_run_is_found() -> None:
    assert unknown_options("```sh\nlloom-gitops plan --nonsense\n```") == ["plan --nonsense"]
    assert unknown_options("```sh\nlloom-gitops frobnicate\n```") == ["frobnicate"]
