"""tools/models.py: the catalogue is the truth, the tool checks it and takes in a config."""

from __future__ import annotations

import json
import shutil

import pytest

from tests.scripts import script

tool = script("models")

CONFIG = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "intermediate_size": 128,
    "vocab_size": 1000,
    "tie_word_embeddings": True,
    "torch_dtype": "bfloat16",
    "bos_token_id": 1,
}


@pytest.fixture
def copied(tmp_path, monkeypatch):
    """Return a copy of the data folder that the tool writes to."""
    shutil.copytree(tool.DATA, tmp_path / "data")
    monkeypatch.setattr(tool, "DATA", tmp_path / "data")
    return tmp_path


def test_the_catalogue_is_whole_and_in_its_one_form():
    assert list(tool.faults()) == []


def test_a_config_is_taken_in_with_the_fields_its_importer_reads(copied, capsys):
    path = copied / "config.json"
    path.write_text(json.dumps(CONFIG))
    tool.main(["add", str(path), "acme/Tiny-1", "config.json of acme/Tiny-1, read 2026-12-01"])
    # 1000x64 embedding, tied; 2 layers of 64x(64+32+32+64) + 3x64x128 + 2x64, a last norm of 64
    assert f"{64_000 + 2 * (12_288 + 24_576 + 128) + 64:,} parameters" in capsys.readouterr().out
    (entry,) = [e for e in tool.read("llama")["models"] if e["id"] == "acme/Tiny-1"]
    assert (entry["family"], "bos_token_id" in entry["config"]) == ("llama", False)
    assert list(tool.faults()) == []


def test_faults_are_named(copied):
    index = tool.read("index")
    index["models"]["acme/Gone"] = "llama"
    index["aliases"]["acme/Other"] = "acme/Nobody"
    (copied / "data" / "index.json").write_text(tool.index_text(index))
    found = list(tool.faults())
    assert any("('acme/Gone', 'llama')" in line for line in found)
    assert "index: alias 'acme/Other' is of an unknown model 'acme/Nobody'" in found


@pytest.mark.parametrize("arguments", [[], ["add", "config.json"], ["nonsense"]])
def test_other_arguments_print_the_usage(arguments):
    with pytest.raises(SystemExit, match=r"python tools/models\.py check"):
        tool.main(arguments)
