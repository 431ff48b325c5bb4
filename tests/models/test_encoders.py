"""Encoders beside a decoder: counted for any file, bounded where their type is unknown."""

from __future__ import annotations

from typing import Any

import pytest

from planner.models import ConfigError, get_model
from planner.models.formulas import MissingField, NoCount, evaluate
from planner.models.huggingface import import_config
from tests.models.configs import LLAMA_PARAMS, llama

CLIP = {
    "model_type": "clip_vision_model",
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_hidden_layers": 24,
    "num_channels": 3,
    "patch_size": 14,
    "image_size": 336,
}


def vision(around: str = "llava", **fields: Any) -> dict[str, Any]:
    """Return a config of a tower beside Llama 3.1 8B."""
    return {"model_type": around, "text_config": llama(), "vision_config": CLIP | fields}


@pytest.mark.parametrize(
    ("model", "params"),
    [
        # Published: total of the safetensors less that of the text model.
        ("Qwen/Qwen3.6-27B", 460_730_096),
        ("moonshotai/Kimi-K2.5", 471_143_920),
        ("MiniMaxAI/MiniMax-M3", 865_567_232),
        ("google/gemma-3-27b-it", 423_060_336),
    ],
)
def test_published_towers(model: str, params: int) -> None:
    spec = get_model(model)
    assert spec.vision_params == params
    assert spec.encoder_params == params
    assert any(note.code == "vision_encoder" for note in spec.notes)


def test_a_tower_and_its_projector() -> None:
    """CLIP ViT-L/14-336 is 303,507,456 parameters; LLaVA joins it with two layers of 4096."""
    tower = (
        1024 * (3 * 14 * 14 + 24 * 24 + 2)
        + 24 * (4 * (1024 * 1024 + 1024) + 2 * 1024 * 4096 + 4096 + 1024 + 4 * 1024)
        + 4 * 1024
    )
    assert tower == 303_507_456
    spec = import_config(vision())
    projector = 1024 * 4096 + 4096 + 4096 * 4096 + 4096
    assert (spec.total_params, spec.vision_params) == (LLAMA_PARAMS, tower + projector)
    assert spec.encoder_range is None
    assert spec.encoder_bytes == 2 * spec.vision_params


def test_a_missing_size_is_that_of_the_class() -> None:
    whole = vision()
    whole["vision_config"].pop("intermediate_size")
    defaulted = import_config(whole)
    # CLIP's class default is 3072.
    saved = 24 * (2 * 1024 * 1024 + 1024)
    assert import_config(vision()).vision_params - defaulted.vision_params == saved
    assert any("intermediate_size" in note.text for note in defaulted.notes)


def test_a_tower_of_an_unknown_type_is_bounded() -> None:
    spec = import_config(vision("acme_vl", model_type="acme_vit"))
    assert spec.encoder_range is not None
    least, most = spec.encoder_range
    assert least < import_config(vision()).vision_params < most
    assert least <= spec.vision_params <= most
    assert any(note.code == "encoder_bounds" for note in spec.notes)


def test_a_bad_size_is_refused_by_its_place() -> None:
    with pytest.raises(ConfigError, match=r"vision_config\.hidden_size"):
        import_config(vision(hidden_size="big"))


@pytest.mark.parametrize(
    ("formula", "value"),
    [
        ("2 * a + b // 3", 17),
        ("linear(a, b)", 80),
        ("linear(a, b, 0)", 70),
        ("area(c)", 12),
        ("a if flag else b", 10),
        ("inner.a", 4),
        ("many(c)", 2),
    ],
)
def test_formulas(formula: str, value: float) -> None:
    scope = {"a": 7, "b": 10, "c": [3, 4], "flag": False, "inner": {"a": 4}}
    assert evaluate(formula, scope) == value


def test_formulas_run_nothing_else() -> None:
    for formula in (
        "__import__('os')",
        "a.__class__",
        "(lambda: 1)()",
        "[1 for _ in c]",
        "9 ** 9 ** 9",
    ):
        with pytest.raises((ConfigError, ValueError)):
            evaluate(formula, {"a": 1, "c": [1]})
    with pytest.raises(MissingField, match="b"):
        evaluate("a + b", {"a": 1})
    with pytest.raises(NoCount):
        evaluate("a // b", {"a": 1, "b": 0})
