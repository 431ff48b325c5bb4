"""GGUF files as they come: in parts, cut, unknown, and of sizes that do not add up."""

from __future__ import annotations

from pathlib import Path

import pytest

from planner.models.gguf import import_gguf
from planner.models.reader import ConfigError
from tests.models.gguf_headers import LLAMA_KEYS, Q8_0, llama_tensors, total_bytes, write


def test_parts_of_a_split_model_join(tmp_path: Path) -> None:
    tensors = llama_tensors()
    half = len(tensors) // 2
    first = write(tmp_path / "m-00001-of-00002.gguf", "llama", LLAMA_KEYS, tensors[:half])
    alone = import_gguf(first)
    assert [note.code for note in alone.notes] == ["gguf_split"]
    assert alone.total_params == 8030261248 - 128256 * 4096 * (
        "output.weight" not in {name for name, *_ in tensors[:half]}
    )
    write(tmp_path / "m-00002-of-00002.gguf", "llama", {}, tensors[half:])
    both = import_gguf(first)
    assert both.id == "m"
    assert both.weights_bytes() == pytest.approx(total_bytes(tensors), rel=1e-3)
    assert import_gguf(tmp_path / "m-00002-of-00002.gguf").total_params == both.total_params


def test_parameters_that_do_not_add_up_are_noted(tmp_path: Path) -> None:
    extra = [*llama_tensors(), ("blk.0.adapter.weight", (65536, 4096), Q8_0)]
    spec = import_gguf(write(tmp_path / "m.gguf", "llama", LLAMA_KEYS, extra))
    assert [note.code for note in spec.notes] == ["gguf_mismatch"]


def test_an_unknown_architecture_is_read_as_a_plain_decoder(tmp_path: Path) -> None:
    spec = import_gguf(write(tmp_path / "m.gguf", "novel", LLAMA_KEYS, llama_tensors()))
    assert spec.total_params == 8030261248
    assert "assumed_architecture" in [note.code for note in spec.notes]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "cannot be read: the file is empty"),
        (b"not a model", "not a GGUF file"),
        (b"GGUF", "cut within its header"),
        (b"GGUF" + (1).to_bytes(4, "little") + bytes(16), "GGUF version 1; accepted: 2, 3"),
        (b"GGUF" + (3).to_bytes(4, "little") + b"\xff" * 16, "cut within its header"),
        (b"GGUF" + (3).to_bytes(4, "little") + bytes(16), "general.architecture: missing"),
    ],
)
def test_bad_files_are_named_in_one_line(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "broken.gguf"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=message) as raised:
        import_gguf(path)
    assert str(raised.value).startswith("broken.gguf: ")
    assert "\n" not in str(raised.value)


def test_a_missing_file_and_a_directory_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"absent\.gguf: cannot be read"):
        import_gguf(tmp_path / "absent.gguf")
    (tmp_path / "folder.gguf").mkdir()
    with pytest.raises(ConfigError, match=r"folder\.gguf: cannot be read"):
        import_gguf(tmp_path / "folder.gguf")


@pytest.mark.parametrize("share", range(4, 2000, 131))
def test_a_header_cut_anywhere_is_refused(tmp_path: Path, share: int) -> None:
    whole = write(tmp_path / "whole.gguf", "llama", LLAMA_KEYS, llama_tensors()).read_bytes()
    path = tmp_path / "cut.gguf"
    path.write_bytes(whole[: len(whole) * share // 2100])
    with pytest.raises(ConfigError, match="cut within its header"):
        import_gguf(path)


def test_a_missing_size_names_file_and_field(tmp_path: Path) -> None:
    keys = {key: value for key, value in LLAMA_KEYS.items() if key != "embedding_length"}
    with pytest.raises(ConfigError, match=r"m\.gguf: hidden_size.*missing"):
        import_gguf(write(tmp_path / "m.gguf", "llama", keys, llama_tensors()))
