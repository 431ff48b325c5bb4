"""The catalogue: names, aliases, refusals, and that its data hang together."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from planner import models
from planner.models import UnknownModel, describe, get_model, list_models
from planner.models.catalogue import catalogued
from planner.models.huggingface import import_config
from tests.models.configs import LLAMA, LLAMA_PARAMS, llama

DATA = Path(models.__file__).parent / "data"
INDEX = json.loads((DATA / "index.json").read_text(encoding="utf-8"))
ENTRIES = [
    entry
    for file in sorted(DATA.glob("*.json"))
    if file.name != "index.json"
    for entry in json.loads(file.read_text(encoding="utf-8"))["models"]
]


@pytest.mark.parametrize(
    "name",
    [
        "meta-llama/Llama-3.1-70B-Instruct",
        "META-LLAMA/llama-3.1-70b-instruct",
        "llama-3.1-70b-instruct",
        "  Llama-3.1-70B-Instruct ",
    ],
)
def test_ids_in_any_case_and_without_organisation(name: str) -> None:
    spec = get_model(name)
    assert spec.id == "meta-llama/Llama-3.1-70B-Instruct"
    assert spec.total_params == 70_553_706_496


@pytest.mark.parametrize(
    ("name", "same"),
    [
        ("deepseek-ai/DeepSeek-V3-0324", "deepseek-ai/DeepSeek-V3"),
        ("deepseek-ai/DeepSeek-R1-0528", "deepseek-ai/DeepSeek-R1"),
        ("Qwen/Qwen2.5-72B-Instruct", "Qwen/Qwen2-72B-Instruct"),
        ("Qwen/Qwen3.6-27B", "nvidia/Qwen3.6-27B-NVFP4"),
        ("meta-llama/Llama-3.3-70B-Instruct", "meta-llama/Meta-Llama-3-70B"),
        ("databricks/dbrx-instruct", "LnL-AI/dbrx-base-converted-v2"),
    ],
)
def test_aliases_are_the_same_network(name: str, same: str) -> None:
    assert get_model(name).total_params == get_model(same).total_params
    assert get_model(name).kv_elements_per_token == get_model(same).kv_elements_per_token


def test_an_alias_keeps_its_own_format() -> None:
    assert get_model("Qwen/Qwen3.6-27B").quantization.id == "none"
    assert get_model("RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic").quantization.id == "fp8"
    assert get_model("moonshotai/Kimi-K2-Thinking").quantization.id == "int4"


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("lama-3.1-70b-instruct", "meta-llama/Llama-3.1-70B-Instruct"),
        ("deepseek-ai/DeepSeek-V33", "deepseek-ai/DeepSeek-V3"),
        ("qwen3-32", "Qwen/Qwen3-32B"),
        ("deepseek-v3.7", "deepseek-ai/DeepSeek-V3.1"),
        ("zzz", ""),
    ],
)
def test_unknown_names_tell_the_nearest(name: str, nearest: str) -> None:
    with pytest.raises(UnknownModel) as caught:
        get_model(name)
    message = str(caught.value)
    assert message.startswith(f"model: unknown model {name!r}; nearest: ")
    assert nearest in message
    assert len(message.split("nearest: ")[1].split(", ")) == 3


@pytest.mark.parametrize("name", ["qwen/qwen3-32b", "QWEN3-32B", "Qwen/Qwen3-32B"])
def test_a_catalogued_name_is_the_model_it_names(name: str) -> None:
    assert catalogued(name) is get_model("Qwen/Qwen3-32B")


@pytest.mark.parametrize("name", ["", "qwen3-23b", "model.json", "."])
def test_what_is_not_catalogued_is_no_model_and_no_path(name: str) -> None:
    assert catalogued(name) is None


@pytest.mark.parametrize("name", ["", "   ", 7, None])
def test_refuses_what_is_no_name(name: object) -> None:
    with pytest.raises(UnknownModel, match="expected a catalogue id, a path or a config object"):
        get_model(name)


def test_paths_only_where_allowed(tmp_path: Path) -> None:
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA), encoding="utf-8")
    assert get_model(str(path)).total_params == LLAMA_PARAMS
    for name in (str(path), str(tmp_path)):
        with pytest.raises(UnknownModel):
            get_model(name, local=False)


def test_inline_objects() -> None:
    spec = get_model(LLAMA)
    assert (spec.id, spec.total_params) == ("inline", LLAMA_PARAMS)
    assert get_model(llama(_name_or_path="me/mine")).id == "me/mine"


def test_list_by_family_kind_and_text() -> None:
    assert len(list_models()) == len(INDEX["models"]) > 300
    assert {spec.model_type for spec in list_models(family="qwen3_moe")} == {"qwen3_moe"}
    assert {spec.kind for spec in list_models(kind="moe")} == {"moe"}
    ids = [spec.id for spec in list_models(text="nemotron ultra fp8")]
    assert ids == ["nvidia/NVIDIA-Nemotron-3-Ultra-550B-A55B-FP8"]
    assert list_models(text="no such words") == []


def test_describe() -> None:
    facts = describe(get_model("deepseek-ai/DeepSeek-V3"))
    expected = {
        "id": "deepseek-ai/DeepSeek-V3",
        "model_type": "deepseek_v3",
        "kind": "moe",
        "total_params": 671_026_419_200,
        "active_params": 37_552_282_624,
        "embedding_params": 926_679_040,
        "kv_bytes_per_token": 70272,
        "state_bytes_per_sequence": 0,
        "layers": 61,
        "quantization": "fp8",
        "max_context": 163840,
        "notes": [],
    }
    assert expected.items() <= facts.items()
    assert 11e9 < facts["mtp_params"] < 14e9
    assert facts["weights_bytes"] == pytest.approx(671e9, rel=0.005)
    assert "deepseek-ai/DeepSeek-V3-0324" in facts["aliases"]
    assert json.loads(json.dumps(facts)) == facts


def test_index_and_files_agree() -> None:
    assert {entry["id"] for entry in ENTRIES} == set(INDEX["models"])
    assert set(INDEX["aliases"].values()) <= set(INDEX["models"])
    lowered = [name.lower() for name in (*INDEX["models"], *INDEX["aliases"])]
    assert len(lowered) == len(set(lowered))
    editions = {json.loads(f.read_text(encoding="utf-8"))["edition"] for f in DATA.glob("*.json")}
    assert editions == {models.edition()}


@pytest.mark.parametrize("entry", ENTRIES, ids=[entry["id"] for entry in ENTRIES])
def test_entry(entry: dict[str, object]) -> None:
    spec = get_model(str(entry["id"]))
    assert entry["source"]
    assert spec.source
    assert "assumed_architecture" not in {note.code for note in spec.notes}
    assert spec.total_params == import_config(entry["config"]).total_params
    assert 0 < spec.active_params <= spec.total_params
    assert spec.kv_elements_per_token + spec.window_elements + spec.state_elements > 0
    facts = describe(spec)
    assert facts["weights_bytes"] > 0.2 * spec.total_params


def test_one_id_loads_one_family() -> None:
    code = (
        "import sys; from planner.models import get_model; get_model('llama-3.1-8b-instruct');"
        "print(sorted(m for m in sys.modules if m.startswith('planner.models.families.')))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "['planner.models.families.llama']"


def test_listing_again_reads_no_config_again() -> None:
    """More models than a bounded cache held: each call threw out what the next one needed."""
    first, second = list_models(), list_models()
    assert all(one is other for one, other in zip(first, second, strict=True))


@pytest.mark.parametrize(
    "model", ["openai/gpt-oss-120b", "openai/gpt-oss-20b", "MiniMaxAI/MiniMax-M2.5"]
)
def test_a_dtype_that_is_known_is_not_assumed(model: str) -> None:
    """Their config.json lack it; the source says where it is from instead."""
    spec = get_model(model)
    assert spec.dtype == "bf16"
    assert "assumed_dtype" not in {note.code for note in spec.notes}
    assert "dtype, which it lacks, by" in spec.source
