"""Write planner/models/facts/class_defaults.json from the configuration classes of transformers.

    python tools/import_defaults.py

Needs transformers (and nothing of this project). A class default is what a field that a config.json
leaves out means to the reference implementation. Kept are numbers, flags, short texts and short
lists that may size a network, of every type that decodes and of the towers beside it; also which
types encode only, or encode and decode.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

OUT = Path(__file__).parent.parent / "planner" / "models" / "facts" / "class_defaults.json"
UNSIZED = re.compile(
    r"dropout|_drop$|_pdrop$|eps|epsilon|initializer|init_|_act|activation|(?<!per_)token|_id$|_ids$"
    r"|rope_(?!head)|_rope$|temperature|coef|scaling_factor|loss|label|return_|output_(?!dim|size|channels|proj)|problem"
    r"|chunk_size_feed|use_cache|summary|dtype|pretraining|theta|alpha_init|_std|_mean|freeze"
    r"|pinpoints|seconds|aspect|layerdrop|drop_path|softcap|_limit|_lr_|_scale$|mup|interpolat"
    r"|sampling|jitter|noise|codebook_loss|task_specific|begin_suppress|suppress|forced_|norm_type"
    r"|transformers_version|_multiplier$|logit|_implementation$|z_loss"
)
KEPT_ANYWAY = {"layer_scale_init_value", "use_mean_pooling", "num_visual_indicator_tokens"}
LONGEST = 8
BROKEN = Exception
"""A configuration class without usable defaults raises errors of its own library, of any kind."""
INPUTS = {
    "hidden_size",
    "n_embd",
    "d_model",
    "num_attention_heads",
    "n_head",
    "num_heads",
    "num_hidden_layers",
    "n_layer",
    "num_layers",
    "mamba_expand",
    "expand",
    "intermediate_size",
    "embed_dim",
    "num_key_value_heads",
}
"""Fields that others are computed from."""
UNBUILT = {"encoder-decoder", "speech-encoder-decoder", "vision-encoder-decoder"}
"""Encoder-decoders whose configuration cannot be made without its two halves."""


def sized(name: str, value: Any) -> bool:
    """Return whether a field may size a network."""
    if name in KEPT_ANYWAY:
        return True
    if UNSIZED.search(name) or name.startswith("_") or value is None:
        return False
    if name == "is_encoder_decoder":
        return bool(value)
    if isinstance(value, str):
        return len(value) <= 24 and name not in {"model_type", "architectures"}
    if isinstance(value, list):
        return len(value) <= LONGEST and all(isinstance(item, (int, list)) for item in value)
    return isinstance(value, (bool, int, float))


def computed(config: Any, fields: dict[str, Any]) -> set[str]:
    """Return the fields that the class computes from others where a file leaves them out."""
    derived: set[str] = set()
    for name, value in fields.items():
        if name not in INPUTS or not isinstance(value, int) or not value:
            continue
        try:
            other = type(config)(**{name: 2 * value}).to_dict()
        except BROKEN:
            continue
        derived |= {
            field
            for field, twice in other.items()
            if field != name and fields.get(field) != twice and not isinstance(twice, dict)
        }
    return derived


def facts(config: Any, types: dict[str, dict[str, Any]]) -> None:
    """Add the defaults of a configuration, and of those inside it, to `types`."""
    fields = config.to_dict()
    subs = {
        name: value["model_type"]
        for name, value in fields.items()
        if isinstance(value, dict) and value.get("model_type")
    }
    derived = computed(config, fields)
    entry = {
        name: value for name, value in fields.items() if sized(name, value) and name not in derived
    }
    if subs:
        entry["_sub"] = subs
    types.setdefault(config.model_type, entry)
    for name in subs:
        inner = getattr(config, name, None)
        if hasattr(inner, "to_dict") and inner.model_type not in types:
            facts(type(inner)(), types)


def main() -> None:
    """Read the classes and write the file, a line a type."""
    import transformers
    from transformers.models.auto import modeling_auto as auto
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING

    decoders = (
        set(auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES)
        | set(auto.MODEL_FOR_IMAGE_TEXT_TO_TEXT_MAPPING_NAMES)
        | set(auto.MODEL_FOR_MULTIMODAL_LM_MAPPING_NAMES)
    )
    types: dict[str, dict[str, Any]] = {}
    for name in sorted(decoders):
        try:
            facts(CONFIG_MAPPING[name](), types)
        except BROKEN as error:
            print("left out:", name, error)
    both = {name for name in CONFIG_MAPPING if _is_both(CONFIG_MAPPING, name)} | UNBUILT
    encoders = {
        name
        for names in (
            auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES,
            auto.MODEL_FOR_TEXT_ENCODING_MAPPING_NAMES,
            auto.MODEL_FOR_IMAGE_CLASSIFICATION_MAPPING_NAMES,
            auto.MODEL_FOR_CTC_MAPPING_NAMES,
            auto.MODEL_FOR_AUDIO_CLASSIFICATION_MAPPING_NAMES,
            auto.MODEL_FOR_ZERO_SHOT_IMAGE_CLASSIFICATION_MAPPING_NAMES,
        )
        for name in names
        if name not in both and (name not in decoders or _is_encoder(CONFIG_MAPPING, name))
    }
    encoders -= {entry.get("_sub", {}).get("text_config") for entry in types.values()}
    head = {
        "source": f"configuration classes of transformers {transformers.__version__}",
        "encoder_decoders": sorted(both),
        "encoders": sorted(encoders),
    }
    lines = [f"{json.dumps(name)}: {json.dumps(types[name])}" for name in sorted(types)]
    text = json.dumps(head)[:-1] + ', "types": {\n' + ",\n".join(lines) + "\n}}\n"
    OUT.write_text(text, encoding="utf-8")
    print(len(types), "types,", OUT.stat().st_size, "bytes")


def _is_both(mapping: Any, name: str) -> bool:
    try:
        return bool(getattr(mapping[name](), "is_encoder_decoder", False))
    except BROKEN:
        return False


def _is_encoder(mapping: Any, name: str) -> bool:
    """Return whether a type decodes only when its config says `is_decoder`, false by default."""
    try:
        return getattr(mapping[name](), "is_decoder", None) is False
    except BROKEN:
        return False


if __name__ == "__main__":
    main()
