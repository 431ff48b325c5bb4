"""The tool that reads an engine's published package, on small packages of the engines' forms."""

from __future__ import annotations

import importlib
import json
import sys
import tarfile
import zipfile
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]

VLLM = {
    "vllm/config/cache.py": """
from pydantic import Field
CacheDType = Literal["auto", "fp8"]
raise SystemExit("a package is never imported")

class CacheConfig:
    gpu_memory_utilization: float = Field(default=0.92, gt=0, le=1)
    cache_dtype: CacheDType = "auto"
    kv_cache_memory_bytes: int | None = None
""",
    "vllm/engine/arg_utils.py": '''
class EngineArgs:
    """Arguments."""
    model: str = ModelConfig.model
    gpu_memory_utilization: float = CacheConfig.gpu_memory_utilization
    kv_cache_dtype: CacheDType | str = CacheConfig.cache_dtype
    kv_cache_memory_bytes: Optional[int] = get_field(CacheConfig, "kv_cache_memory_bytes")
    max_num_seqs: int | None = None
    tensor_parallel_size: int = 2 - 1
    params: set[str] = field(default_factory=set)
    nested: dict = dataclasses.field(default_factory=lambda: {"a": [1, -2]})
    _private: int = 3

    @staticmethod
    def add_cli_args(parser):
        group.add_argument("--tensor-parallel-size", "-tp", **kwargs["tensor_parallel_size"])

    def get_batch_defaults(cls, world_size):
        if device_memory >= 160 * GiB_bytes:
            tokens = {Usage.LLM_CLASS: 16384, Usage.OPENAI_API_SERVER: 16384}
        elif device_memory >= 70 * GiB_bytes and "a100" not in device_name and not is_gb10:
            tokens = {Usage.LLM_CLASS: 16384, Usage.OPENAI_API_SERVER: 8192}
        else:
            tokens = {Usage.LLM_CLASS: 8192, Usage.OPENAI_API_SERVER: 2048}
        if current_platform.is_tpu():
            tokens = {Usage.LLM_CLASS: 1, Usage.OPENAI_API_SERVER: 1}
'''.replace("tokens =", "default_max_num_batched_tokens ="),
}

SGLANG = {
    "sglang/srt/arg_groups/fields/schedule.py": """
class Schedule(msgspec.Struct):
    _NS_PATH = "schedule"
    chunked_prefill_size: A[Optional[int], "Tokens of a chunk."] = None
    swa_full_tokens_ratio: A[Optional[float], Arg(help="A ratio.", fallback=0.8)] = None
    tp_size: A[int, Arg(help="Size.", aliases=["--tensor-parallel-size"])] = 1
""",
    "sglang/srt/arg_groups/memory_hook.py": """
def handle_gpu_memory_settings(server_args):
    if gpu_mem is not None:
        if gpu_mem < 20 * 1024:
            if cfg.chunked_prefill_size is None:
                declare_resolution(server_args, "here", chunked_prefill_size=2048)
            if config.max_bs is None:
                decode_cuda_graph_config.max_bs = 8
        elif gpu_mem < 35 * 1024:
            if config.max_bs is None:
                if cfg.tp_size < 4:
                    decode_cuda_graph_config.max_bs = 48
                else:
                    decode_cuda_graph_config.max_bs = 160
        else:
            decode_cuda_graph_config.max_bs = 512
    else:
        decode_cuda_graph_config.max_bs = 160
    decode_cuda_graph_config.max_bs = min(cfg.max_running_requests, 7)
""",
}

LMDEPLOY = {
    "lmdeploy/cli/utils.py": """
class ArgumentHelper:
    def cache_max_entry_count(parser, default=0.8):
        return parser.add_argument('--cache-max-entry-count', type=float, default=default)
    def unused(parser):
        return parser.add_argument('--unused', type=int, default=1)
""",
    "lmdeploy/cli/serve.py": """
class SubCliServe:
    def add_parser_api_server():
        parser.add_argument('model_path', type=str)
        parser.add_argument('--backend', choices=['pytorch', 'turbomind'], default='turbomind')
        parser.add_argument('--eager-mode', action='store_true', default=False)
        ArgumentHelper.cache_max_entry_count(parser)
""",
}

LLAMA = {
    "pkg-1/vendor/llama.cpp/tools/server/README.md": """
| Argument | Explanation |
| -------- | ----------- |
| `-ub, --ubatch-size N` | physical maximum batch size (default: 512)<br/>(env: X) |
| `-cb, --cont-batching, -nocb, --no-cont-batching` | whether (default: enabled) |
| `-sm, --split-mode {none,layer}` | how to split<br/>- none: one GPU<br/>- layer (default): all |
| `-m, --model FNAME` | model path to load |
"""
}


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    sys.path.insert(0, str(ROOT / "tools"))
    try:
        return importlib.import_module("engine_defaults")
    finally:
        sys.path.pop(0)


def wheel(folder: Path, name: str, files: dict[str, str]) -> Path:
    path = folder / f"{name}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for inside, text in files.items():
            archive.writestr(zipfile.ZipInfo(inside, (2026, 11, 1, 0, 0, 0)), text)
    return path


def facts(tool: ModuleType, data: Path, engine: str, version: str, path: Path) -> dict[str, Any]:
    code = tool.main([engine, version, "--package", str(path), "--data", str(data)])
    assert code == 0
    read: dict[str, Any] = json.loads((data / f"defaults/{engine}-{version}.json").read_text())
    return read


def test_defaults_of_configuration_classes(tool: ModuleType, tmp_path: Path) -> None:
    path = wheel(tmp_path, "vllm-0.33.0", VLLM)
    read = facts(tool, tmp_path, "vllm", "0.33.0", path)
    assert (read["released"], read["package"]) == ("2026-11", path.name)
    assert read["arguments"]["gpu_memory_utilization"] == {
        "type": "float",
        "default": 0.92,
        "file": "vllm/config/cache.py",
        "line": 7,
    }
    assert read["arguments"]["kv_cache_dtype"]["type"] == "auto|fp8|str"
    assert read["arguments"]["kv_cache_memory_bytes"]["type"] == "int|None"
    parser = json.loads((tmp_path / "parsers/vllm-0.33.0.json").read_text())["arguments"]
    assert parser["tensor_parallel_size"] == ["int", 1, ["--tensor-parallel-size", "-tp"]]
    assert parser["params"] == ["set[str]", []]
    assert parser["nested"] == ["dict", {"a": [1, -2]}]
    assert parser["model"] == ["str", {"computed": "ModelConfig.model"}]
    assert "_private" not in parser


def test_a_chain_of_conditions_on_memory_is_a_table(tool: ModuleType, tmp_path: Path) -> None:
    read = facts(tool, tmp_path, "vllm", "0.33.0", wheel(tmp_path, "vllm-0.33.0", VLLM))
    assert read["rules"]["max_num_batched_tokens"]["rows"] == [
        {"from_gib": 160.0, "value": 16384},
        {"from_gib": 70.0, "below_gib": 160.0, "except": ["a100", "gb10"], "value": 8192},
        {"below_gib": 160.0, "value": 2048},
    ]


def test_declared_values_by_memory_and_split(tool: ModuleType, tmp_path: Path) -> None:
    read = facts(tool, tmp_path, "sglang", "0.5.23", wheel(tmp_path, "sglang-0.5.23", SGLANG))
    assert read["arguments"]["swa_full_tokens_ratio"]["default"] == 0.8
    assert read["rules"]["chunked_prefill_size"]["rows"] == [{"below_gib": 20.0, "value": 2048}]
    assert read["rules"]["cuda_graph_max_bs"]["rows"] == [
        {"below_gib": 20.0, "value": 8},
        {"from_gib": 20.0, "below_gib": 35.0, "tp_below": 4, "value": 48},
        {"from_gib": 20.0, "below_gib": 35.0, "tp_from": 4, "value": 160},
        {"from_gib": 35.0, "value": 512},
    ]
    parser = json.loads((tmp_path / "parsers/sglang-0.5.23.json").read_text())
    assert parser["arguments"]["tp_size"] == ["int", 1, ["--tensor-parallel-size"]]
    assert "handle_gpu_memory_settings" in parser["by_hand"]


def test_a_parser_with_helpers(tool: ModuleType, tmp_path: Path) -> None:
    path = wheel(tmp_path, "lmdeploy-0.18.0", LMDEPLOY)
    facts(tool, tmp_path, "lmdeploy", "0.18.0", path)
    parser = json.loads((tmp_path / "parsers/lmdeploy-0.18.0.json").read_text())["arguments"]
    assert parser == {
        "backend": ["pytorch|turbomind", "turbomind"],
        "cache_max_entry_count": ["float", 0.8],
        "eager_mode": ["bool", False],
    }


def test_a_table_of_options_in_a_source_archive(tool: ModuleType, tmp_path: Path) -> None:
    path = tmp_path / "llama_cpp_python-1.tar.gz"
    for inside, text in LLAMA.items():
        (tmp_path / "README.md").write_text(text)
        with tarfile.open(path, "w:gz") as archive:
            archive.add(tmp_path / "README.md", inside)
    arguments = ["llama.cpp", "11312", "--package", str(path), "--released", "2026-10"]
    assert tool.main([*arguments, "--data", str(tmp_path)]) == 0
    parser = json.loads((tmp_path / "parsers/llama.cpp-11312.json").read_text())["arguments"]
    assert parser == {
        "cont_batching": ["bool", True, ["-cb", "--cont-batching", "-nocb", "--no-cont-batching"]],
        "model": ["FNAME", None, ["-m", "--model"]],
        "split_mode": ["{none,layer}", "layer", ["-sm", "--split-mode"]],
        "ubatch_size": ["N", 512, ["-ub", "--ubatch-size"]],
    }


def changed(files: dict[str, str], old: str, new: str) -> dict[str, str]:
    return {inside: text.replace(old, new) for inside, text in files.items()}


def test_a_version_that_says_the_same_is_named_in_the_file_before(
    tool: ModuleType, tmp_path: Path
) -> None:
    facts(tool, tmp_path, "vllm", "0.33.0", wheel(tmp_path, "vllm-0.33.0", VLLM))
    same = wheel(tmp_path, "vllm-0.34.0", changed(VLLM, "class EngineArgs", "\n\nclass EngineArgs"))
    assert tool.main(["vllm", "0.34.0", "--package", str(same), "--data", str(tmp_path)]) == 0
    assert not (tmp_path / "defaults/vllm-0.34.0.json").exists()
    before = json.loads((tmp_path / "defaults/vllm-0.33.0.json").read_text())
    assert before["same_in"] == ["0.34.0"]
    other = wheel(tmp_path, "vllm-0.35.0", changed(VLLM, "0.92", "0.95"))
    read = facts(tool, tmp_path, "vllm", "0.35.0", other)
    assert read["arguments"]["gpu_memory_utilization"]["default"] == 0.95
    assert json.loads((tmp_path / "defaults/written.json").read_text())["day"] >= "2026-12-01"


def test_the_drift_report(
    tool: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    facts(tool, tmp_path, "vllm", "0.33.0", wheel(tmp_path, "vllm-0.33.0", VLLM))
    newer = changed(changed(VLLM, "0.92", "0.95"), "70 *", "80 *")
    newer = changed(newer, '"auto", "fp8"', '"auto", "nvfp4"')
    newer = changed(newer, "max_num_seqs: int", "max_seqs: int")
    path = wheel(tmp_path, "vllm-0.34.0", newer)
    capsys.readouterr()
    options = ["--package", str(path), "--data", str(tmp_path)]
    assert tool.main(["--drift", "vllm", "0.34.0", *options]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "vllm: 0.33.0 to 0.34.0",
        "arguments: 8; 1 added, 1 removed, 2 changed",
        "~ gpu_memory_utilization: default 0.92 to 0.95",
        "~ kv_cache_dtype: type without fp8, with nvfp4",
        "- max_num_seqs: int|None = null",
        "+ max_seqs: int|None = null",
        "table of max_num_batched_tokens by device:",
        '  - {"from_gib": 70.0, "below_gib": 160.0, "except": ["a100", "gb10"], "value": 8192}',
        '  + {"from_gib": 80.0, "below_gib": 160.0, "except": ["a100", "gb10"], "value": 8192}',
    ]
    assert not (tmp_path / "defaults/vllm-0.34.0.json").exists()


def test_a_rule_that_is_read_by_hand_is_reported_when_it_changes(
    tool: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    facts(tool, tmp_path, "sglang", "0.5.23", wheel(tmp_path, "sglang-0.5.23", SGLANG))
    path = wheel(tmp_path, "sglang-0.6", changed(SGLANG, "max_running_requests, 7", "max_batch, 9"))
    capsys.readouterr()
    options = ["--package", str(path), "--data", str(tmp_path)]
    assert tool.main(["sglang", "0.6", "--drift", *options]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == (
        "to be read by hand: handle_gpu_memory_settings (sglang/srt/arg_groups/memory_hook.py:2) "
        "is not the same"
    )


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["ollama", "1"], "engine: unknown engine 'ollama'; accepted: vllm, sglang, trtllm"),
        (["vllm", "nightly"], "version: 'nightly' is none; accepted: 0.33.0, newest"),
        (["vllm", "--pre"], "version"),
        (["vllm", "0.33.0", "--package", "EMPTY"], "has no file like vllm/engine/arg_utils.py"),
        (["vllm", "newest", "--package", "EMPTY"], "version: of what --package holds"),
    ],
)
def test_what_cannot_be_read_is_one_line(
    tool: ModuleType,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    line: str,
) -> None:
    given = [str(tmp_path) if word == "EMPTY" else word for word in arguments]
    try:
        code = tool.main([*given, "--data", str(tmp_path)])
    except SystemExit as refused:
        code = refused.code
        line = "usage"
    error = capsys.readouterr().err
    assert code == 2
    assert line in error
    assert line == "usage" or error.count("\n") == 1
