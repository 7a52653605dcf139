"""Canonical YAML: our parser, a YAML 1.1 parser and another YAML 1.2 parser all read back what was written."""

from __future__ import annotations

import io
import os
import subprocess
import sys
from decimal import Decimal
from typing import Any

import pytest
import ruamel.yaml
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from lloom_gitops.codec import dump, parse
from lloom_gitops.codec.emitting import WIDTH

TRICKY = [
    *("", " ", "~", "null", "Null", "true", "off", "NO", "y", "N", "on", "012", "0o17", "0x1f", "1_000", "22:22"),
    *("1e3", "+.inf", ".nan", "=", "<<", "2027-01-31", "a: b", "a #b", "#a", "- a", "? a", "&a", "*a", "!a", "%a"),
    *("@a", "`a`", "a,b", "{a}", "[a]", "a'b", 'a"b', "a\\b", "a\nb", "a\tb", " a", "a ", "é", "\U0001f600", "a:"),
    *(":a", "unified:0", "start:lane", "---", "...", "a  b", "\x07", "\x7f", "\x85", "\u2028", "\ufeff", "\ufffe"),
]
NUMBERS = [0, -1, 10**20, Decimal("0.1"), Decimal("-0.000001"), Decimal("121.70"), Decimal("1E+3"), Decimal("38.0")]

texts = st.one_of(st.sampled_from(TRICKY), st.text(st.characters(exclude_categories=("Cs",)), max_size=30))
numbers = st.one_of(
    st.integers(-(10**18), 10**18),
    st.decimals(-(10**9), 10**9, places=6, allow_nan=False),
    st.sampled_from(NUMBERS),
)
plain = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, texts),
    lambda inner: st.one_of(st.lists(inner, max_size=5), st.dictionaries(texts, inner, max_size=5)),
    max_leaves=25,
)


def plainer(data: Any, number: Any) -> Any:
    """Data with its numbers turned by `number`, to compare with parsers that know floats only."""
    if isinstance(data, dict):
        return {key: plainer(value, number) for key, value in data.items()}
    if isinstance(data, list):
        return [plainer(item, number) for item in data]
    return number(data) if isinstance(data, (int, float, Decimal)) and not isinstance(data, bool) else data


@settings(max_examples=300, deadline=None, derandomize=True, database=None)
@given(plain)
def test_what_is_written_is_read_back(data: Any) -> None:
    text = dump(data)
    parsed = parse(text.encode(), "x")
    assert parsed.findings == ()
    assert parsed.value == data
    assert dump(parsed.value) == text


@settings(max_examples=150, deadline=None, derandomize=True, database=None)
@given(plain)
def test_other_parsers_read_the_same(data: Any) -> None:
    text = dump(data)
    assert plainer(yaml.safe_load(text), float) == plainer(data, float)
    other = ruamel.yaml.YAML(typ="safe", pure=True).load(io.StringIO(text))
    assert plainer(other, float) == plainer(data, float)


@pytest.mark.parametrize("text", TRICKY, ids=ascii)
def test_tricky_strings_stay_strings_in_every_place(text: str) -> None:
    for data in ({text: text}, [text], {"a": {text: [text, {text: text}]}}):
        written = dump(data)
        assert parse(written.encode(), "x").value == data
        assert yaml.safe_load(written) == data


STORY = {
    "spec": {
        "steps": [
            {"id": "start:lane", "kind": "start", "reads": [{"at": "/nodes/n", "equals": "ready"}], "after": []},
            {"id": "route:a", "kind": "route"},
        ],
        "says": "one start",
        "models": [f"model-{number}" for number in range(20)],
        "empty": {},
        "grid": [[1, 2], [3, [4, 5]]],
        "size": Decimal("38.0"),
    },
    "metadata": {"name": "plan", "id": "sha256:aa"},
    "kind": "Plan",
    "apiVersion": "lloom-gitops/v1",
}
STORY_TEXT = (
    """\
apiVersion: lloom-gitops/v1
kind: Plan
metadata: {name: plan, id: "sha256:aa"}
spec:
  empty: {}
  grid:
    - [1, 2]
    - - 3
      - [4, 5]
  models:
"""
    + "".join(f"    - model-{number}\n" for number in range(20))
    + """\
  says: one start
  size: 38
  steps:
    - id: "start:lane"
      kind: start
      after: []
      reads: [{at: /nodes/n, equals: ready}]
    - {id: "route:a", kind: route}
"""
)


def test_reads_well_in_a_diff() -> None:
    assert dump(STORY) == STORY_TEXT


def test_short_collections_stand_on_one_line_up_to_the_width() -> None:
    fits = {"a": ["x" * (WIDTH - 5)]}
    assert dump(fits).count("\n") == 1
    assert dump({"a": ["x" * (WIDTH - 4)]}).count("\n") == 2


@pytest.mark.parametrize("data", [1.5, {"a": 2.5}, {"a": {1, 2}}, object()], ids=["float", "inner", "set", "object"])
def test_only_exact_plain_data_is_written(data: Any) -> None:
    with pytest.raises(TypeError):
        dump(data)


def test_what_yaml_cant_hold_is_refused() -> None:
    with pytest.raises(ValueError, match="surrogate"):
        dump({"a": "\ud800"})
    with pytest.raises(ValueError, match="longer"):
        dump({"k" * 600: 1})


def test_same_bytes_under_other_hash_seeds_locales_and_time_zones() -> None:
    program = (
        "from tests.pools import three_spark, load_three_spark;"
        "from lloom_gitops.codec import dump, encode, digest;"
        "d, i = three_spark(); print(load_three_spark().digest, digest(i)); print(dump(encode(i)))"
    )
    outputs = set()
    for seed, locale, zone in (("0", "C", "UTC"), ("1", "de_CH.UTF-8", "Asia/Tokyo"), ("77", "tr_TR", "America/Lima")):
        env = os.environ | {"PYTHONHASHSEED": seed, "LC_ALL": locale, "TZ": zone, "PYTHONUTF8": "1"}
        run = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, check=True)
        outputs.add(run.stdout)
    assert len(outputs) == 1
