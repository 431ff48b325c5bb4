"""Formulas of data files, lists of modules and names of roles: small cases by hand."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.models.formulas import MissingField, NoCount, evaluate, linear, names
from planner.models.modules import Modules, by_name, everywhere, overridden
from planner.models.reader import ConfigError, ConfigReader, every, first_key
from planner.precision import get_format

SCOPE: dict[str, Any] = {
    "hidden": 64,
    "layers": 4,
    "ratio": 2.5,
    "sides": [16, 32],
    "kinds": ["full", "linear", "full"],
    "flag": False,
    "none": None,
    "text": {"vocab": 100, "width": 8},
}


@pytest.mark.parametrize(
    ("formula", "value"),
    [
        ("hidden * layers + 1", 257),
        ("hidden // 5", 12),
        ("hidden % 5", 4),
        ("hidden / 5", 13),  # 12.8, rounded
        ("hidden - layers * 2", 56),
        ("text.vocab * text.width", 800),
        ("sides[1]", 32),
        ("ratio * hidden", 160),
        # A matrix and its bias; without one.
        ("linear(hidden, 8)", 64 * 8 + 8),
        ("linear(hidden, 8, 0)", 512),
        # Four matrices of attention, two of the MLP, biases, two LayerNorms.
        ("block(8, 32)", 4 * 72 + (8 * 32 + 32) + (32 * 8 + 8) + 32),
        ("area(sides)", 512),
        ("area(7)", 49),
        ("grid(224, 16)", 196),
        ("grid(sides, 8)", 8),
        ("grid(230, sides)", 14 * 7),
        ("most(sides)", 32),
        ("most(5)", 5),
        ("many(sides)", 2),
        ("many(hidden)", 1),
        ("runs(kinds, 'full')", 2),
        ("max(1, hidden)", 64),
        ("min(1, hidden)", 1),
        ("ceil(hidden / 5)", 13),
        ("int(ratio)", 2),
        ("hidden if layers > 3 else 0", 64),
        ("hidden if not flag else 0", 64),
        ("missing or layers", 4),
        ("flag or layers", 4),
        ("hidden if layers >= 4 and ratio < 3 else 1", 64),
        ("hidden if kinds == sides else 2", 2),
        ("hidden if layers != 4 else 3", 3),
        ("hidden if layers <= 3 else 5", 5),
        ("-layers + hidden", 60),
    ],
)
def test_value_of_a_formula(formula: str, value: int) -> None:
    assert evaluate(formula, SCOPE) == value


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("missing * 2", "missing: missing"),
        ("text.missing", "missing: missing"),
        ("hidden / 0", "division by zero"),
        ("none * 2", "none is no number"),
        ("kinds * 2", "kinds is no number"),
        ("sides[9]", "list index out of range"),
        ("hidden[0]", "hidden is no list"),
        ("layers - hidden", "its count is out of range"),
        ("hidden * 1e30", "its count is out of range"),
        ("hidden ** 2", "is not arithmetic"),
        ("open('x')", "is not arithmetic"),
        ("'text'", "its count is out of range"),
        ("sum(layers)", "not iterable"),
    ],
)
def test_what_has_no_value_says_why(formula: str, message: str) -> None:
    with pytest.raises((MissingField, NoCount), match=message) as raised:
        evaluate(formula, SCOPE)
    assert isinstance(raised.value, ConfigError)


def test_names_of_a_formula() -> None:
    assert set(names("hidden * text.vocab + max(layers, 1)")) >= {"hidden", "text.vocab", "layers"}


@given(st.integers(1, 10_000), st.integers(1, 10_000))
def test_a_bias_is_one_value_an_output(inputs: int, outputs: int) -> None:
    assert linear(inputs, outputs) - linear(inputs, outputs, 0) == outputs
    assert evaluate("linear(a, b)", {"a": inputs, "b": outputs}) == inputs * outputs + outputs


@pytest.mark.parametrize(
    ("pattern", "module", "covered"),
    [
        ("lm_head", "lm_head", True),
        ("model.layers.3.mlp", "layers.3.mlp.gate_proj", True),
        ("model.layers.3.mlp", "layers.13.mlp.gate_proj", False),
        ("mlp.gate", "layers.3.mlp.gate", True),
        ("mlp.gate", "layers.3.mlp.gate_proj", False),
        ("language_model.model.layers.0.self_attn", "layers.0.self_attn.q_proj", True),
        ("*self_attn*", "layers.7.self_attn.q_proj", True),
        ("model.layers.*.mlp.experts.*", "layers.5.mlp.experts.1.gate_proj", True),
        ("model.layers.*.mlp.experts.*", "layers.5.mlp.shared_experts.gate_proj", False),
        (r"re:.*layers\.\d+\.mlp\..*", "layers.5.mlp.up_proj", True),
        (r"re:.*layers\.\d+\.mlp\..*", "layers.5.self_attn.q_proj", False),
        ("re:(", "layers.5.mlp.up_proj", False),
        ("q_proj.weight", "layers.5.self_attn.q_proj", True),
    ],
)
def test_what_a_name_covers(pattern: str, module: str, covered: bool) -> None:
    assert (Modules([pattern]).find(module) == pattern) == covered


def test_shares_of_layers() -> None:
    named = Modules(["model.layers.0.self_attn", "model.layers.1.self_attn.q_proj"])
    assert named.layers_covered("attention", range(4)) == 0.5
    assert named.layers_covered("mlp", range(4)) == 0.0
    assert named.layers_covered("mlp", []) == 0.0
    assert named.first("attention", range(4)) == "model.layers.0.self_attn"
    assert named.first("mlp", range(4)) is None


FP8, NVFP4 = get_format("fp8"), get_format("nvfp4")


def reader(**fields: Any) -> ConfigReader:
    return ConfigReader({"num_hidden_layers": 8, **fields})


@pytest.mark.parametrize(
    ("ignored", "left"),
    [
        ([], {"attention", "mlp", "experts", "shared_experts", "indexer", "mixer"}),
        (["*self_attn*"], {"mlp", "experts", "shared_experts", "mixer"}),
        (["re:.*mlp.*"], {"attention", "indexer", "mixer"}),
        # One layer of eight on the list is an exception, not the rule.
        (["model.layers.0.self_attn"], {"attention", "mlp", "experts", "shared_experts", "mixer"}),
        (["lm_head"], {"attention", "mlp", "experts", "shared_experts", "indexer", "mixer"}),
    ],
)
def test_roles_that_no_ignore_list_names(ignored: list[str], left: set[str]) -> None:
    formats = everywhere(reader(), {"ignore": ignored}, FP8)
    assert left <= set(formats)
    assert set(formats.values()) == {FP8}
    if "attention" not in left:
        assert "attention" not in formats


def test_exceptions_of_a_list_of_modules() -> None:
    """Experts in 4.5 bits, all else in 8; half of the attention's matrices kept as they are."""
    named = {"re:.*mlp.experts.*": NVFP4, "re:.*self_attn.[qk]_proj": None}
    text = reader(num_experts=8)
    usual = dict.fromkeys(("attention", "mlp", "experts"), FP8)
    formats = overridden(text, usual, named)
    assert formats["experts"].bits == 4.5
    assert formats["mlp"] is FP8
    # q and k of four matrices in 16 bits, v and o in 8: 12 on average.
    assert formats["attention"].bits == 12
    assert "mixed_quantization" in {note.code for note in text.notes}


def test_formats_listed_module_by_module() -> None:
    found = by_name(reader(), {"model.layers.1.mlp.up_proj": FP8, "lm_head": NVFP4}, False)
    assert found == {"mlp": FP8, "head": NVFP4}
    none = reader()
    assert by_name(none, {"x": FP8}, False) == {}
    assert [note.code for note in none.notes] == ["no_target"]
    cut = by_name(reader(), {"model.layers.1.mlp.up_proj": FP8}, True)
    assert cut["shared_experts"] is FP8
    assert cut["experts"] is NVFP4


@pytest.mark.parametrize(
    ("period", "layers", "offset", "hits"),
    [(2, 6, 0, [0, 2, 4]), (3, 7, 1, [1, 4]), (1, 3, 0, [0, 1, 2]), (4, 8, 3, [3, 7])],
)
def test_every(period: int, layers: int, offset: int, hits: list[int]) -> None:
    found = every(period, layers, offset)
    assert [index for index, hit in enumerate(found) if hit] == hits
    assert len(found) == layers
    assert first_key({"b": 1, "c": 2}, ("a", "c", "b")) == "c"
    assert first_key({}, ("a",)) is None
