"""Strict JSON with places, for files of other programs: nothing is lost in silence, and every fault has its line."""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from typing import Any

from lloom_gitops.model.errors import Finding

from .parsing import MAX_BYTES, MAX_DEPTH, Parsed, Place, Tree

_BLANK = " \t\r\n"


def parse_json(data: bytes, file: str, *, limit: int = MAX_BYTES) -> Parsed:
    """Parse one JSON document; objects keep their order, numbers are ints and floats. Raises nothing for any input.

    What JSON allows and a reader would drop is a finding: duplicate keys, numbers beyond a double, lone surrogates.
    """
    if len(data) > limit:
        fault = Finding(code="fileTooLarge", message=f"{len(data)} bytes, at most {limit} are read", file=file)
        return Parsed(file, None, (fault,), Tree())
    try:
        text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8")
    except UnicodeDecodeError:
        fault = Finding(code="notUtf8", message="not UTF-8", file=file, hint="save the file as UTF-8")
        return Parsed(file, None, (fault,), Tree())
    reading = _Reading(text, file)
    tree = Tree()
    try:
        value, end = reading.value(reading.blank(0), tree, 0)
        if reading.blank(end) < len(text):
            raise json.JSONDecodeError("more after the end of the document", text, reading.blank(end))
    except json.JSONDecodeError as error:
        reading.report("jsonSyntax", error.pos, error.msg, "a JSON file is wanted here")
        value = None
    return Parsed(file, None if reading.findings else value, tuple(reading.findings), tree)


class _Reading:
    """State of one parse: recursive over objects and lists, the standard decoder for the rest."""

    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file
        self.findings: list[Finding] = []
        self.starts = [0, *(at + 1 for at, char in enumerate(text) if char == "\n")]
        self.scalar = json.JSONDecoder(parse_constant=_refuse).raw_decode

    def place(self, at: int) -> Place:
        line = bisect_right(self.starts, at)
        return line, at - self.starts[line - 1] + 1

    def report(self, code: str, at: int, message: str, hint: str) -> None:
        line, column = self.place(at)
        self.findings.append(Finding(code=code, message=message, file=self.file, line=line, column=column, hint=hint))

    def blank(self, at: int) -> int:
        while at < len(self.text) and self.text[at] in _BLANK:
            at += 1
        return at

    def value(self, at: int, tree: Tree, depth: int) -> tuple[Any, int]:
        if depth > MAX_DEPTH:
            raise json.JSONDecodeError(f"nested deeper than {MAX_DEPTH} levels", self.text, at)
        if self.text[at : at + 1] == "{":
            return self.object(at, tree, depth)
        if self.text[at : at + 1] == "[":
            return self.array(at, tree, depth)
        try:
            value, end = self.scalar(self.text, at)
        except ValueError as error:
            if isinstance(error, json.JSONDecodeError):
                raise
            raise json.JSONDecodeError(str(error), self.text, at) from error
        if isinstance(value, float) and not math.isfinite(value):
            raise json.JSONDecodeError("a number that is too large", self.text, at)
        if isinstance(value, str):
            self.check_text(value, at)
        return value, end

    def check_text(self, value: str, at: int) -> None:
        if any("\ud800" <= char <= "\udfff" for char in value):
            self.report("loneSurrogate", at, "half of a character (a lone surrogate)", "write the whole character")

    def object(self, at: int, tree: Tree, depth: int) -> tuple[dict[str, Any], int]:
        found: dict[str, Any] = {}
        at = self.blank(at + 1)
        while self.text[at : at + 1] != "}" or found:
            if self.text[at : at + 1] != '"':
                raise json.JSONDecodeError("a key in double quotes is wanted", self.text, at)
            key, colon = self.value(at, Tree(), depth)
            if key in found:
                line = tree.places[key][0]
                self.report("duplicateKey", at, f"{key} is already set in line {line}", "keep one of the two")
            tree.places[key] = self.place(at)
            tree.inner[key] = Tree()
            at = self.after(colon, ":", "a colon is wanted")
            found[key], at = self.value(at, tree.inner[key], depth + 1)
            at = self.blank(at)
            if self.text[at : at + 1] == "}":
                break
            at = self.after(at, ",", "a comma or } is wanted")
        return found, at + 1

    def array(self, at: int, tree: Tree, depth: int) -> tuple[list[Any], int]:
        found: list[Any] = []
        at = self.blank(at + 1)
        while self.text[at : at + 1] != "]" or found:
            index = len(found)
            tree.places[index] = self.place(at)
            tree.inner[index] = Tree()
            item, at = self.value(at, tree.inner[index], depth + 1)
            found.append(item)
            at = self.blank(at)
            if self.text[at : at + 1] == "]":
                break
            at = self.after(at, ",", "a comma or ] is wanted")
        return found, at + 1

    def after(self, at: int, sign: str, wanted: str) -> int:
        at = self.blank(at)
        if self.text[at : at + 1] != sign:
            raise json.JSONDecodeError(wanted, self.text, at)
        return self.blank(at + 1)


def _refuse(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")
