"""Edits of people's YAML in place: only what is edited changes, and what can't be done so is refused."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from lloom_gitops.codec.edits import new_document, put, take
from lloom_gitops.codec.parsing import parse
from lloom_gitops.model.errors import Refused

ORDER = ("endpoint", "apiKeyEnv", "state", "reason", "links")

PUTS = [
    pytest.param(
        "spec:\n  endpoint: x  # here\n  # of the links\n  links: []\n",
        ("spec", "state"),
        "cordon",
        "spec:\n  endpoint: x  # here\n  state: cordon\n  # of the links\n  links: []\n",
        id="block: behind the fields before it",
    ),
    pytest.param(
        "spec:\n    links:\n    - {a: b}\n    - c: d\n      e:\n    # end\n",
        ("spec", "state"),
        "cordon",
        "spec:\n    links:\n    - {a: b}\n    - c: d\n      e:\n    state: cordon\n    # end\n",
        id="block: to the end where none is before it, indent kept",
    ),
    pytest.param("spec:\n  a: 1", ("spec", "b"), "x", "spec:\n  a: 1\n  b: x", id="no line end at the end"),
    pytest.param("spec:\r\n  a: 1\r\n", ("spec", "b"), "x", "spec:\r\n  a: 1\r\n  b: x\r\n", id="CRLF"),
    pytest.param("\ufeffspec:\n  a: 1\n", ("spec", "a"), "x", "\ufeffspec:\n  a: x\n", id="byte order mark"),
    pytest.param("spec: {a: 1 ,  b: 2}\n", ("spec", "c"), "x", "spec: {a: 1 ,  b: 2, c: x}\n", id="flow: blanks kept"),
    pytest.param(
        "spec: {endpoint: x, links: []}\n",
        ("spec", "state"),
        "cordon",
        "spec: {endpoint: x, state: cordon, links: []}\n",
        id="flow: behind the fields before it",
    ),
    pytest.param("spec: {a: 1,}\n", ("spec", "b"), "x", "spec: {a: 1, b: x,}\n", id="flow: last comma kept"),
    pytest.param(
        "spec: {\n  a: 1  # one\n}\n", ("spec", "b"), "x", "spec: {\n  a: 1, b: x  # one\n}\n", id="flow: over lines"
    ),
    pytest.param("spec: {}\n", ("spec", "a"), "x", "spec: {a: x}\n", id="empty flow, scalar"),
    pytest.param(
        "spec: {}  # none yet\nz: 1\n",
        ("spec", "m@n"),
        {"residency": "always", "reason": "a: b"},
        'spec:  # none yet\n  m@n: {residency: always, reason: "a: b"}\nz: 1\n',
        id="empty flow becomes a block for a map",
    ),
    pytest.param(
        "spec:\n  a@n: {}\n",
        ("spec", "a@n", "residency"),
        "auto",
        "spec:\n  a@n: {residency: auto}\n",
        id="a field of an empty pin",
    ),
    pytest.param("state: serve   # why\n", ("state",), "drain", "state: drain   # why\n", id="a value in place"),
    pytest.param("state: 'serve'\n", ("state",), "it's", "state: 'it''s'\n", id="single quotes stay"),
    pytest.param('state: "serve"\n', ("state",), 'a "b"', 'state: "a \\"b\\""\n', id="double quotes stay"),
    pytest.param(
        "a: >-\n  x\n  y\n\n# c\nb: z\n", ("b",), "q", "a: >-\n  x\n  y\n\n# c\nb: q\n", id="beside a folded text"
    ),
    pytest.param('state: "x"\n', ("state",), "a\u2028", 'state: "a\\u2028"\n', id="what YAML takes for a line end"),
    pytest.param("a:   # none\nb: 1\n", ("a",), "x", "a: x   # none\nb: 1\n", id="where nothing was written"),
    pytest.param("a: x\n", ("a",), None, "a: null\n", id="nothing, written out"),
    pytest.param('"a": x\n', ("b",), "off", '"a": x\nb: "off"\n', id="words of YAML 1.1 are quoted"),
]


@pytest.mark.parametrize(("before", "path", "value", "after"), PUTS)
def test_put(before: str, path: tuple[str, ...], value: object, after: str) -> None:
    assert put(before.encode(), path, value, ORDER).decode() == after  # type: ignore[arg-type]


TAKES = [
    pytest.param(
        "spec:\n  a: 1\n  # of b\n  b: 2  # two\n  c: 3\n", "b", "spec:\n  a: 1\n  # of b\n  c: 3\n", id="block"
    ),
    pytest.param(
        "spec:\n  a:\n    x: 1\n    # of y\n    y: [\n      2]\n\n  c: 3\n", "a", "spec:\n\n  c: 3\n", id="nested"
    ),
    pytest.param("spec:  # pins\n  # of a\n  a: 1\n", "a", "spec: {}  # pins\n  # of a\n", id="the only one"),
    pytest.param("spec:\r\n  a: 1\r\n  b: 2", "b", "spec:\r\n  a: 1", id="CRLF, no line end at the end"),
    pytest.param("spec: {a: 1, b: 2, c: 3}\n", "a", "spec: {b: 2, c: 3}\n", id="flow: first"),
    pytest.param("spec: {a: 1, b: 2, c: 3}\n", "b", "spec: {a: 1, c: 3}\n", id="flow: middle"),
    pytest.param("spec: {a: 1, b: 2}\n", "b", "spec: {a: 1}\n", id="flow: last"),
    pytest.param("spec: {a: {x: 1}}\n", "a", "spec: {}\n", id="flow: only"),
    pytest.param(
        "spec: {\n  a: 1,  # one\n  b: 2,  # two\n}\n", "b", "spec: {\n  a: 1,  # one\n}\n", id="flow: own line, last"
    ),
    pytest.param(
        "spec: {\n  a: 1,  # one\n  b: 2, c: 3,\n}\n",
        "c",
        "spec: {\n  a: 1,  # one\n  b: 2,\n}\n",
        id="flow: shared line",
    ),
]


@pytest.mark.parametrize(("before", "key", "after"), TAKES)
def test_take(before: str, key: str, after: str) -> None:
    assert take(before.encode(), ("spec", key)).decode() == after


REFUSALS = [
    pytest.param("a: &x serve\nb: *x\n", ("a",), "cordon", id="an anchor that is used"),
    pytest.param("a: serve\nb: &x {c: 1}\nd: *x\n", ("d", "e"), "cordon", id="a map that stands elsewhere too"),
    pytest.param("a: |\n  text\n", ("a",), "x", id="a text block"),
    pytest.param("a: {b: 1}\n", ("a",), "x", id="a map where a scalar goes"),
    pytest.param("a: [1]\n", ("a", "b"), "x", id="a list where a map is needed"),
    pytest.param("a: {  # none\n}\n", ("a", "b"), {}, id="a comment would be lost"),
    pytest.param("a: 1\na: 2\n", ("b",), "x", id="the document has faults"),
]


@pytest.mark.parametrize(("text", "path", "value"), REFUSALS)
def test_what_can_not_be_edited_alone_is_refused(text: str, path: tuple[str, ...], value: object) -> None:
    with pytest.raises(Refused, match="can't be changed without touching more"):
        put(text.encode(), path, value)  # type: ignore[arg-type]


def test_a_comment_between_two_entries_is_never_lost() -> None:
    with pytest.raises(Refused):
        take(b"spec: {a: 1,  # one\n  b: 2, c: 3}\n", ("spec", "a"))


def test_what_is_so_already_stays_byte_for_byte() -> None:
    text = b"a:   'x'   # as it was\r\n"
    assert put(text, ("a",), "x") == text
    assert take(text, ("b",)) == text
    assert take(text, ("b", "c")) == text


def test_a_new_file_starts_with_its_schema() -> None:
    made = new_document("../schemas/pins.v1.schema.json", {"kind": "Pins", "spec": {}})
    assert made == b"# yaml-language-server: $schema=../schemas/pins.v1.schema.json\nkind: Pins\nspec: {}\n"


# Documents as people write them: both styles, comments anywhere, either line end.
KEYS = st.lists(st.sampled_from(["a", "b", "c@n", "d"]), min_size=1, max_size=4, unique=True)
WORDS = st.sampled_from(["serve", "'x y'", '"q"', "12", "null", "[1, {k: v}]", "{x: y}", "2027-01-31"])
COMMENTS = st.sampled_from(["", "  # said", "   "])


@st.composite
def documents(draw: st.DrawFn) -> tuple[bytes, list[str]]:
    keys = draw(KEYS)
    end = draw(st.sampled_from(["\n", "\r\n"]))
    if draw(st.booleans()):
        body = ", ".join(f"{key}: {draw(WORDS)}" for key in keys)
        lines = [f"spec: {{{body}}}{draw(COMMENTS)}"]
    else:
        indent = " " * draw(st.integers(1, 4))
        lines = [f"spec:{draw(COMMENTS)}"]
        for key in keys:
            lines += draw(st.sampled_from([[], [f"{indent}# of {key}"], [""]]))
            lines.append(f"{indent}{key}: {draw(WORDS)}{draw(COMMENTS)}")
    text = end.join(["# head", "kind: Node", *lines, *draw(st.sampled_from([[], ["# tail"], ["z: 1"]]))])
    return (text + draw(st.sampled_from(["", end]))).encode(), keys


VALUES = st.one_of(st.none(), st.booleans(), st.integers(-9, 9), st.text("ab :#{}'\"\\,é\u2028", max_size=8))


def comments(data: bytes) -> list[str]:
    return [line.partition(b"#")[2].decode().strip() for line in data.splitlines() if b"#" in line]


@given(documents(), VALUES | st.dictionaries(st.sampled_from("xyz"), VALUES, max_size=2))
def test_what_is_added_and_taken_away_again_leaves_the_same_bytes(
    drawn: tuple[bytes, list[str]], value: object
) -> None:
    data, keys = drawn
    added = put(data, ("spec", "new@n"), value, (*keys[:1], "new@n"))  # type: ignore[arg-type]
    assert parse(added, "").value["spec"]["new@n"] == value
    assert YAML(typ="rt", pure=True).load(io.BytesIO(added)).keys() == YAML().load(io.BytesIO(data)).keys()
    assert take(added, ("spec", "new@n")) == data


@given(documents(), st.data())
def test_a_value_that_is_changed_and_changed_back_leaves_the_same_bytes(
    drawn: tuple[bytes, list[str]], data: st.DataObject
) -> None:
    text, keys = drawn
    key = data.draw(st.sampled_from(keys))
    old = parse(text, "").value["spec"][key]
    if isinstance(old, (dict, list)):
        return
    changed = put(text, ("spec", key), "cordon")
    assert comments(changed) == comments(text)
    if isinstance(old, str):
        back = put(changed, ("spec", key), old)
        assert parse(back, "").value == parse(text, "").value
        assert b"2027" in text or back == text


@given(documents(), st.data())
def test_what_is_taken_away_takes_only_its_own_line(drawn: tuple[bytes, list[str]], data: st.DataObject) -> None:
    text, keys = drawn
    key = data.draw(st.sampled_from(keys))
    taken = take(text, ("spec", key))
    assert key not in parse(taken, "").value["spec"]
    lost = {line for line in text.splitlines() if line} - set(taken.splitlines())
    assert len(lost) <= 2, "the entry's own line, and the map's where it is empty now"
    assert [word for word in comments(text) if word != "said"] == [word for word in comments(taken) if word != "said"]
