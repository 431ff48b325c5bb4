"""Configs and files that no network is described by: one line that names the field, no crash."""

from __future__ import annotations

import csv
import gzip
import io
import json
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.models import ConfigError, describe
from planner.models.gguf import import_gguf
from planner.models.huggingface import import_config, import_file
from planner.precision import UnknownFormat
from tests.models.configs import deepseek, llama
from tests.models.gguf_headers import Q4_0, attention, mlp, write

VALUES: tuple[Any, ...] = (
    -1,
    0.5,
    1e30,
    float("nan"),
    float("inf"),
    10**12,
    10**40,
    "9" * 50,
    [],
    {"a": 1},
    ["x"],
)
FIELDS = (
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "num_key_value_heads",
    "intermediate_size",
    "vocab_size",
    "max_position_embeddings",
    "tie_word_embeddings",
)
EXPERT_FIELDS = (
    "n_routed_experts",
    "num_experts_per_tok",
    "moe_intermediate_size",
    "n_shared_experts",
    "first_k_dense_replace",
    "kv_lora_rank",
    "qk_rope_head_dim",
    "v_head_dim",
)
VISION: dict[str, Any] = {
    "model_type": "llava",
    "text_config": llama(),
    "vision_config": {"model_type": "clip_vision_model", "hidden_size": 1024, "patch_size": 14},
}
VISION_FIELDS = ("hidden_size", "patch_size", "num_hidden_layers", "intermediate_size")


def changed(config: dict[str, Any], field: str, value: Any) -> dict[str, Any]:
    return {**config, field: value}


CASES = [
    *((changed(llama(), field, value), field) for field in FIELDS for value in VALUES),
    *((changed(deepseek(), field, value), field) for field in EXPERT_FIELDS for value in VALUES),
    *(
        ({**VISION, "vision_config": changed(VISION["vision_config"], field, value)}, field)
        for field in VISION_FIELDS
        for value in VALUES
    ),
]


@pytest.mark.parametrize(("config", "field"), CASES)
def test_a_bad_value_is_refused_by_its_field(config: dict[str, Any], field: str) -> None:
    with pytest.raises(ConfigError, match=field) as refusal:
        import_config(config)
    assert_one_line(refusal.value)


def assert_one_line(error: Exception) -> None:
    assert "\n" not in str(error)
    assert len(str(error)) < 500


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({"peft_type": "LORA", "base_model_name_or_path": "a/b"}, "peft_type"),
        ({"dim": 4096, "n_layers": 32, "hidden_dim": 14336, "vocab_size": 32000}, "dim"),
        ({"_class_name": "StableDiffusionPipeline"}, "_class_name"),
        ({"metadata": {"total_size": 5}, "weight_map": {"a": "b"}}, "weight_map"),
        ({"producer": {"name": "modelopt"}, "quantization": {"quant_algo": "FP8"}}, "quantization"),
        ({"model_type": "t5", "d_model": 512}, "model_type"),
        ({"model_type": "bert", "hidden_size": 768}, "model_type"),
        (llama(is_encoder_decoder=True), "is_encoder_decoder"),
        (llama(architectures=["LlamaForSequenceClassification"]), "architectures"),
        ({"model_type": "xlstm", "embedding_dim": 4096}, "qk_dim_factor"),
        ({"model_type": "some_vlm", "text_config": 5}, "text_config"),
        ({**VISION, "vision_config": [1]}, "vision_config"),
    ],
)
def test_other_files_and_networks_are_refused_by_what_says_so(
    config: dict[str, Any], named: str
) -> None:
    with pytest.raises(ConfigError, match=named) as refusal:
        import_config(config)
    assert_one_line(refusal.value)


@pytest.mark.parametrize(
    "name", ["params.json", "adapter_config.json", "model_index.json", "hf_quant_config.json"]
)
def test_a_directory_says_what_it_holds_instead(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text("{}")
    with pytest.raises(ConfigError, match=r"config\.json.*its directory holds") as refusal:
        import_file(tmp_path)
    assert_one_line(refusal.value)


TRUTH = Path(__file__).with_name("derived_truth.csv.gz")
KNOWN = [
    json.loads(row["config"])
    for row in csv.DictReader(io.StringIO(gzip.decompress(TRUTH.read_bytes()).decode()))
    if row["variant"] == "1"
]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=3)
    ),
    max_leaves=6,
)


@settings(max_examples=200, deadline=None)
@given(config=st.sampled_from(KNOWN), data=st.data())
def test_any_value_in_any_field_is_read_or_refused_in_a_line(
    config: dict[str, Any], data: st.DataObject
) -> None:
    field = data.draw(st.sampled_from(sorted(config)))
    value = data.draw(JSON)
    try:
        spec = import_config({**config, field: value})
    except (ConfigError, UnknownFormat) as error:
        assert_one_line(error)
    else:
        assert describe(spec)["total_params"] > 0


def gguf(tmp_path: Path) -> Path:
    tensors = [("token_embd.weight", (1000, 256), Q4_0), ("output_norm.weight", (256,), Q4_0)]
    for layer in range(2):
        tensors += attention(f"blk.{layer}", 256, 256, 128, Q4_0)
        tensors += mlp(f"blk.{layer}", 256, 512, Q4_0)
    keys = {
        "block_count": 2,
        "context_length": 4096,
        "embedding_length": 256,
        "feed_forward_length": 512,
        "attention.head_count": 4,
        "attention.head_count_kv": 2,
    }
    return write(tmp_path / "m.gguf", "llama", keys, tensors)


def test_a_whole_gguf_file_and_its_header_alone_are_read(tmp_path: Path) -> None:
    path = gguf(tmp_path)
    alone = import_gguf(path)
    path.write_bytes(path.read_bytes() + bytes(3_000_000))
    assert import_gguf(path).total_params == alone.total_params


@pytest.mark.parametrize("share", [n / 40 for n in range(1, 40)])
def test_a_gguf_file_cut_in_its_header_is_refused(tmp_path: Path, share: float) -> None:
    path = gguf(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])
    with pytest.raises(ConfigError, match=r"m\.gguf") as refusal:
        import_gguf(path)
    assert_one_line(refusal.value)


@pytest.mark.parametrize("present", [64, 1_000, 100_000, 500_000])
def test_a_gguf_file_cut_in_its_tensors_is_refused(tmp_path: Path, present: int) -> None:
    path = gguf(tmp_path)
    path.write_bytes(path.read_bytes() + bytes(present))
    with pytest.raises(ConfigError, match=r"m\.gguf: cut: tensor blk\.1") as refusal:
        import_gguf(path)
    assert_one_line(refusal.value)


@pytest.mark.parametrize(
    ("at", "form", "value"),
    [
        (0, "4s", b"GGML"),
        (4, "<I", 1),
        (4, "<I", 99),
        (8, "<Q", 2**63),
        (16, "<Q", 2**63),
        (24, "<Q", 2**62),
    ],
)
def test_a_gguf_header_with_absurd_counts_is_refused(
    tmp_path: Path, at: int, form: str, value: Any
) -> None:
    path = gguf(tmp_path)
    data = bytearray(path.read_bytes())
    struct.pack_into(form, data, at, value)
    path.write_bytes(data)
    with pytest.raises(ConfigError, match=r"m\.gguf") as refusal:
        import_gguf(path)
    assert_one_line(refusal.value)


@pytest.mark.parametrize("dimension", [0, 2**62])
def test_a_gguf_tensor_of_absurd_shape_is_refused_by_name(tmp_path: Path, dimension: int) -> None:
    path = gguf(tmp_path)
    data = bytearray(path.read_bytes())
    at = data.index(b"token_embd.weight") + len(b"token_embd.weight") + 4
    struct.pack_into("<Q", data, at, dimension)
    path.write_bytes(data)
    with pytest.raises(ConfigError, match=r"m\.gguf: tensor token_embd\.weight: shape"):
        import_gguf(path)
