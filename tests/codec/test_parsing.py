"""One YAML 1.2 parse: what words and numbers mean, where things stand, and what is refused, with its place."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
import yaml

from lloom_gitops.codec import parse, parsing
from lloom_gitops.codec.scalars import NumberRefused, resolve

CORE = {
    "true": True,
    "False": False,
    "null": None,
    "~": None,
    "": None,
    "12": 12,
    "-7": -7,
    "012": 12,
    "0o17": 15,
    "0x1F": 31,
    "1.50": Decimal("1.5"),
    "38.0": 38,
    "1e3": 1000,
    "-2.5e-3": Decimal("-0.0025"),
    "121.7": Decimal("121.7"),
    # Words and strings, whatever YAML 1.1 makes of them.
    "off": "off",
    "no": "no",
    "on": "on",
    "Yes": "Yes",
    "y": "y",
    "22:22:22": "22:22:22",
    "1_000": "1_000",
    "0b11": "0b11",
    "2027-01-31": "2027-01-31",
    "1.2.3": "1.2.3",
    "nan": "nan",
    "tRue": "tRue",
    "-": "-",
}


@pytest.mark.parametrize(("text", "value"), CORE.items(), ids=[text or "empty" for text in CORE])
def test_core_schema(text: str, value: Any) -> None:
    resolved = resolve(text)
    assert (resolved, type(resolved)) == (value, type(value))


@pytest.mark.parametrize("text", [".inf", "-.INF", ".nan", "1" * 41, "1e999999999", "1e-31", "0x" + "f" * 50])
def test_figures_that_are_no_figures(text: str) -> None:
    with pytest.raises(NumberRefused):
        resolve(text)


def test_quoted_words_are_strings() -> None:
    assert parse(b"""[true, 'true', "12", null, 'null', "~"]""", "x").value == [True, "true", "12", None, "null", "~"]


BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{b}: &{b} [{', '.join(['*' + a] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)
DEEP_ALIAS = "a: &a " + "{x: " * 16 + "1" + "}" * 16 + "\nb: " + "{x: " * 20 + "*a" + "}" * 20

REFUSED = {
    # id: (text, code, line, column)
    "brackets": ("a: [1, 2", "yamlSyntax", 2, 1),
    "indentation": ("a:\n  b: 1\n c: 2\n", "yamlSyntax", 3, 2),
    "tab": ("a:\n\tb: 1\n", "yamlSyntax", 2, 1),
    "duplicate key": ("a: 1\nb: 2\na: 3\n", "duplicateKey", 3, 1),
    "duplicate key inside": ("x:\n  - {a: 1, a: 2}\n", "duplicateKey", 2, 12),
    "number as key": ("a: 1\n8: 2\n", "keyNotString", 2, 1),
    "true as key": ("true: 2\n", "keyNotString", 1, 1),
    "list as key": ("? [a, b]\n: 2\n", "keyNotString", 1, 3),
    "merge key": ("a: &a {x: 1}\nb:\n  <<: *a\n", "mergeKey", 3, 3),
    "tag": ("a: !!python/object:os.system x\n", "tagRefused", 1, 4),
    "tag on a map": ("a: !x {b: 1}\n", "tagRefused", 1, 4),
    "second document": ("a: 1\n---\nb: 2\n", "severalDocuments", 2, 1),
    "unknown anchor": ("a: *b\n", "unknownAnchor", 1, 4),
    "alias in itself": ("a: &a [1, *a]\n", "recursiveAlias", 1, 11),
    "alias bomb": (BOMB, "tooManyAliases", 5, 8),
    "many aliases": ("a: &a 1\nb: [" + "*a, " * 80 + "]", "tooManyAliases", 2, 261),
    "deep by aliases": (DEEP_ALIAS, "tooManyAliases", 2, 84),
    "too deep": ("a: " + "[" * 40 + "]" * 40, "tooDeep", 1, 35),
    "far too deep": ("[" * 900_000, "yamlSyntax", 1, 1001),
    "block too deep": ("- " * 5_000, "tooDeep", 1, 65),
    "no UTF-8": (b"a: 1\nb: \xff\n", "notUtf8", 2, 4),
    "UTF-16": ("a: 1".encode("utf-16"), "notUtf8", 1, 1),
    "control character": ("name: spark\x07node\n", "controlCharacter", 1, 12),
    "NUL": ("a: 1\nb: \x00\n", "controlCharacter", 2, 4),
    "line separator": ("a: x\u2028b: y\n", "controlCharacter", 1, 5),
    "infinity": ("a: .inf\n", "numberRefused", 1, 4),
    "too large": (b"#" * (1024 * 1024 + 1), "fileTooLarge", 0, 0),
}


@pytest.mark.parametrize(("text", "code", "line", "column"), REFUSED.values(), ids=REFUSED.keys())
def test_bad_input_is_a_finding_with_its_place(text: str | bytes, code: str, line: int, column: int) -> None:
    parsed = parse(text.encode() if isinstance(text, str) else text, "fleet/pool.yaml")
    found = [(finding.code, finding.line, finding.column, finding.file) for finding in parsed.findings]
    assert (code, line, column, "fleet/pool.yaml") in found, found
    assert all(finding.hint for finding in parsed.findings)


@pytest.mark.parametrize(
    "text", [text for text, code, *_ in REFUSED.values() if code not in ("fileTooLarge", "yamlSyntax")]
)
def test_without_libyaml_the_same_is_refused(text: str | bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    data = text.encode() if isinstance(text, str) else text
    with_libyaml = [finding.code for finding in parse(data, "x").findings]
    monkeypatch.setattr(parsing, "_LOADER", yaml.SafeLoader)
    assert [finding.code for finding in parse(data, "x").findings] == with_libyaml


def test_all_soft_faults_are_reported_at_once() -> None:
    parsed = parse(b"a: 1\na: 2\n8: 3\nb: !t 4\nc: .nan\nd: {<<: 1}\n", "x")
    assert [finding.code for finding in parsed.findings] == [
        "duplicateKey",
        "keyNotString",
        "tagRefused",
        "numberRefused",
        "mergeKey",
    ]
    assert parsed.value["a"] == 1


def test_aliases_within_the_limits_are_read() -> None:
    parsed = parse(b"a: &a {x: [1, 2]}\nb: *a\nc: [*a, *a]\n", "x")
    assert parsed.findings == ()
    assert parsed.value == {"a": {"x": [1, 2]}, "b": {"x": [1, 2]}, "c": [{"x": [1, 2]}, {"x": [1, 2]}]}


def test_a_byte_order_mark_is_passed_over() -> None:
    assert parse(b"\xef\xbb\xbfa: 1", "x").value == {"a": 1}


TEXT = """\
# a comment
spec:
  aliases:
    a/b~c:
      models: [é, second]
    plain:
      models:
        - one
        - {x: 1}
"""


@pytest.mark.parametrize(
    ("pointer", "place"),
    [
        ("", (1, 1)),
        ("/spec", (2, 1)),
        ("/spec/aliases/a~1b~0c", (4, 5)),
        ("/spec/aliases/a~1b~0c/models/1", (5, 19)),
        ("/spec/aliases/plain/models/0", (8, 11)),
        ("/spec/aliases/plain/models/1/x", (9, 12)),
        ("/spec/aliases/plain/models/7", (7, 7)),
        ("/spec/nothing/here", (2, 1)),
    ],
)
def test_places(pointer: str, place: tuple[int, int]) -> None:
    assert parse(TEXT.encode(), "x").place(pointer) == place
