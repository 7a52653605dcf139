"""The closed list of what can be wrong with a file or a document's shape: one meaning and one remedy a code."""

from __future__ import annotations

from typing import NamedTuple


class Meaning(NamedTuple):
    """What a code says, and what to do about it."""

    says: str
    remedy: str


MEANINGS: dict[str, Meaning] = {
    # Files
    "fileTooLarge": Meaning(
        "The file is larger than is read: 1 MiB of people's files, 16 MiB of what programs write.",
        "split the file; aliases and pins may stand in several",
    ),
    "notUtf8": Meaning("The file is not UTF-8 text.", "save it as UTF-8"),
    "controlCharacter": Meaning(
        "A control character, or another one that editors don't show, stands in the file.",
        "remove it; inside double quotes it can be written as an escape",
    ),
    "symbolicLink": Meaning(
        "A symbolic link below `fleet/` or `recipes/` is not followed: it could lead out of the repository.",
        "put the file itself in its place",
    ),
    "notAFile": Meaning(
        "Something below `fleet/` or `recipes/` is no plain file: a submodule, a pipe, a device.",
        "put a plain file in its place, or move it elsewhere",
    ),
    "unknownFile": Meaning(
        "A YAML or JSON file lies where nothing reads it, so what it says has no effect.",
        "move it, as .yaml, to its kind's folder (fleet/nodes, lanes, profiles, policies, aliases, pins; recipes)",
    ),
    "poolMissing": Meaning(
        "There is no `fleet/pool.yaml`.", "docs/guides/first-pool.md shows one; `--repo DIR` names another repository"
    ),
    # YAML
    "yamlSyntax": Meaning("The text is no YAML.", "check indentation, quotes and brackets at the place"),
    "severalDocuments": Meaning("A file holds several documents.", "put each document in a file of its own"),
    "duplicateKey": Meaning("A map has a key twice. Other readers take the last in silence.", "keep one of the two"),
    "keyNotString": Meaning("A key is a number, a boolean, null, a list or a map.", "put the key in quotes"),
    "mergeKey": Meaning("A merge key (`<<`): YAML 1.2 has none.", "write the fields out"),
    "tagRefused": Meaning("A tag (`!!str`, `!x`).", "leave the tag out; quote what is a string"),
    "numberRefused": Meaning(
        "Infinity, NaN, or a number of more than 40 characters or with an exponent beyond 30.",
        "write the number out, or quote a word",
    ),
    "tooDeep": Meaning("Lists and maps are nested deeper than 32 levels.", "no document needs that"),
    "unknownAnchor": Meaning("An alias (`*x`) names an anchor that is not above it.", "define it above with `&x`"),
    "recursiveAlias": Meaning("An anchor contains itself.", "write the value out"),
    "tooManyAliases": Meaning(
        "More than 64 aliases, or more than 10,000 nodes or 32 levels by them.", "write the values out"
    ),
    # Shape
    "unknownKind": Meaning("`kind` is missing or no kind of ours.", "see the schemas: one a kind"),
    "wrongKind": Meaning("The document's kind does not belong in this folder.", "move the file, or correct the kind"),
    "unknownVersion": Meaning("`apiVersion` is not `lloom-gitops/v1`.", "correct it, or use a program that knows it"),
    "unknownField": Meaning("A field that the kind does not have.", "correct its name, or take it out"),
    "missingField": Meaning("A field that the kind must have is missing.", "add it"),
    "wrongType": Meaning("A value has another type than wanted.", "write it as wanted; the hint says how"),
    "wrongWord": Meaning(
        "A value is not one of the words that may stand there.",
        "take one of them. `off` and `no` are words in YAML 1.2",
    ),
    "wrongForm": Meaning(
        "A text has not the form that is wanted: a name, MODEL@NODE, a day, a URL. The value is not shown.",
        "write it as wanted",
    ),
    "wrongCount": Meaning("A text, list or map has too few or too many characters or entries.", "add or remove some"),
    "wrongShape": Meaning("A value has another shape than wanted.", "see the kind's schema"),
    "outOfRange": Meaning("A number is below or above what makes sense.", "correct it; mind the unit in the name"),
    "duplicateEntry": Meaning("A list has an entry twice that must be there once.", "keep one of the two"),
    # Between documents
    "duplicateName": Meaning("Two documents, or two files of aliases or pins, have the same name.", "keep one of them"),
    "unlistedDiffers": Meaning("Two files of aliases say different things of `unlisted`.", "say it in one file"),
}
