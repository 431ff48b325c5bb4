"""Configs that no decoder is described by: other files, encoders, classifiers, networks unread."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from planner.models.defaults import encodes_and_decodes, encodes_only
from planner.models.reader import ConfigError, ConfigReader

Config = Mapping[str, Any]

_OTHER_FILES: tuple[tuple[str, Callable[[Config], bool], str], ...] = (
    (
        "peft_type",
        lambda c: "peft_type" in c or ("lora_alpha" in c and "base_model_name_or_path" in c),
        "this is an adapter's config; give the config.json of its base model",
    ),
    (
        "dim",
        lambda c: (
            "dim" in c and "n_layers" in c and "hidden_size" not in c and "model_type" not in c
        ),
        "this is Mistral's own params.json; give the config.json beside it",
    ),
    (
        "_class_name",
        lambda c: "_class_name" in c or "_diffusers_version" in c,
        "this is a diffusers pipeline, which generates no tokens",
    ),
    (
        "weight_map",
        lambda c: "weight_map" in c,
        "this is an index of safetensors; give the config.json beside it, or their directory",
    ),
    (
        "quantization",
        lambda c: "producer" in c and "quantization" in c and "hidden_size" not in c,
        "this is hf_quant_config.json; give the config.json beside it, which names the network",
    ),
    (
        "tokenizer_class",
        lambda c: "tokenizer_class" in c and "added_tokens_decoder" in c,
        "this is a tokenizer's config; give the config.json beside it",
    ),
    (
        "image_processor_type",
        lambda c: "image_processor_type" in c and "hidden_size" not in c,
        "this is a preprocessor's config; give the config.json beside it",
    ),
)
"""Field, test and message of files that are dropped in place of a config.json."""

_NO_DECODER = re.compile(
    r"For(SequenceClassification|TokenClassification|QuestionAnswering|MaskedLM|MultipleChoice"
    r"|NextSentencePrediction|ImageClassification|AudioClassification|CTC|RewardModel|Pretraining"
    r"|SemanticSegmentation|ObjectDetection|TextEncoding)$|(PairClassification|RewardModel)$"
)

UNREAD: Mapping[str, str] = {
    "blip": "its decoder attends to the picture in every layer",
    "blt": "it decodes bytes through three networks (encoder_config, global_config and more)",
    "cosmos3_diffuser": "it generates pictures",
    "deepseek_ocr2": "its encoder is a language model of its own (vision_config)",
    "diffusion_gemma": "it generates blocks of tokens by diffusion",
    "dory": "its layer_types interleave attention and MLPs that loop (n_recurrent_loops)",
    "emu3": "its picture tokenizer (vq_config) is not sized",
    "evolla": "its decoder attends to proteins in some layers (protein_encoder_config)",
    "idefics": "gated cross-attention layers (cross_layer_interval) stand between its layers",
    "janus": "its picture generator (vq_config) is not sized",
    "kosmos-2": "its text_config names layers and heads of a fairseq decoder (layers, embed_dim)",
    "kosmos-2.5": "its text_config names layers and heads of a fairseq decoder (layers, embed_dim)",
    "kyutai_speech_to_text": "it decodes 32 streams of an audio codec (codec_config) at once",
    "moshi": "it decodes streams of an audio codec through a second network (depth_decoder_config)",
    "nemo_speechlm": "its speech encoder (asr_config) is not sized",
    "pi0": "it generates actions through a second network (dit_config)",
    "reformer": "its attention hashes tokens into buckets (num_buckets)",
    "rwkv": "version 4 keeps vectors of state (attention_hidden_size); versions 5 to 7 are read",
    "recurrent_gemma": "its gated linear recurrences (lru_width) are not modelled",
    "trocr": "its decoder attends to a picture in every layer (cross_attention_hidden_size)",
    "xlm": "it encodes (asm, causal); as a decoder it is not read",
    "xlnet": "it predicts tokens in any order (bi_data, attn_type), not one after the other",
    "xlstm": "its matrix memories (qk_dim_factor, v_dim_factor) are not modelled",
    "zaya": "its keys and values are convolved (cca_time0, cca_time1), which is not modelled",
}
"""Types that are known and not read, with what stands in the way and the field that says it."""


def refuse(root: ConfigReader, text: ConfigReader) -> None:
    """Raise ConfigError, naming a field, unless the config may describe a decoder that is read."""
    for field, is_it, why in _OTHER_FILES:
        if is_it(root.config):
            raise ConfigError(f"{field}: {why}")
    for reader in (root, text):
        if reader.config.get("is_encoder_decoder") is True:
            raise ConfigError(
                f"{reader.path}is_encoder_decoder: true; an encoder with a decoder that attends"
                " to it is not read, only decoders are"
            )
        _refuse_type(reader)
    architectures = root.config.get("architectures")
    for name in architectures if isinstance(architectures, list) else ():
        if isinstance(name, str) and _NO_DECODER.search(name):
            raise ConfigError(f"architectures: {name} classifies or encodes; it decodes no tokens")


def _refuse_type(reader: ConfigReader) -> None:
    name = reader.config.get("model_type")
    if not isinstance(name, str):
        return
    field = f"{reader.path}model_type: {name!r}"
    if name in UNREAD:
        raise ConfigError(f"{field} is not read: {UNREAD[name]}")
    if encodes_and_decodes(name):
        raise ConfigError(f"{field} is an encoder with a decoder; only decoders are read")
    if encodes_only(name):
        raise ConfigError(f"{field} is an encoder; it decodes no tokens")
