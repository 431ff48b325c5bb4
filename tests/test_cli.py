"""The command line as a person meets it: answers, one-line refusals, documentation that matches."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from planner import Scenario, hw, plan
from planner.cli import main

LLAMA = "meta-llama/Llama-3.1-70B-Instruct"
PLAN = ["plan", LLAMA, "--gpu", "h100-sxm5", "--tp", "4", "--context", "8192"]
CONFIG = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "vocab_size": 128256,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "max_position_embeddings": 131072,
    "torch_dtype": "bfloat16",
    "tie_word_embeddings": False,
}


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """Run a command that must be refused; return its one line."""
    with pytest.raises(SystemExit) as stop:
        main([*arguments])
    printed = capsys.readouterr()
    assert stop.value.code == 2
    assert printed.out == ""
    assert printed.err.count("\n") == 1
    assert "Traceback" not in printed.err
    return printed.err


def answered(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    main([*arguments])
    printed = capsys.readouterr()
    assert printed.err == ""
    return printed.out


def test_plan_says_it_in_a_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    out = answered(capsys, *PLAN)
    assert "Memory-bound at every batch: intensity saturates at 59.8 FLOP/byte" in out
    assert "the ridge is 295" in out
    assert "328 kB" in out or "320" in out
    assert "\x1b[" not in out  # plain in a pipe


def test_plan_json_keeps_the_contract(capsys: pytest.CaptureFixture[str]) -> None:
    answer = json.loads(answered(capsys, *PLAN, "--batch", "1,64", "--json"))
    assert list(answer) == [
        "scenario",
        "verdict",
        "limits",
        "memory",
        "points",
        "serving",
        "kernels",
        "advice",
        "notes",
        "editions",
    ]
    assert {
        "batch",
        "context",
        "flops",
        "bytes",
        "arithmetic_intensity",
        "bound",
        "roofline_tpot_s",
        "tpot_s",
        "tokens_per_s",
        "tokens_per_s_per_gpu",
        "tokens_per_s_interval",
        "tokens_per_s_per_user",
        "mbu",
        "mfu",
    } == set(answer["points"][0])
    assert answer["memory"]["kv_bytes_per_token"] == 327_680
    assert [point["batch"] for point in answer["points"]] == [1, 64]


def test_the_levers_shown_are_those_of_the_answer(capsys: pytest.CaptureFixture[str]) -> None:
    command = (*PLAN, "--batch", "1,64")
    shown = answered(capsys, *command)
    question = Scenario(model=LLAMA, gpu="h100-sxm5", tp=4, batch=[1, 64], context=8192)
    advice = plan(question, advice=True).advice
    assert advice
    assert "levers at batch 64, context 8,192" in shown
    assert all(f"{one.gain:.2f}×" in shown for one in advice)
    assert json.loads(answered(capsys, *command, "--json"))["advice"] is None


def test_organisation_and_case_may_be_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    out = answered(capsys, "models", "show", "llama-3.1-70b-instruct", "--json")
    assert json.loads(out)["total_params"] == 70_553_706_496


def test_gpus_show_keeps_the_contract(capsys: pytest.CaptureFixture[str]) -> None:
    facts = json.loads(answered(capsys, "gpus", "show", "h100-sxm5", "--json"))
    assert facts["ridge_point"]["bf16"] == pytest.approx(295, abs=1)
    assert facts["memory_bytes"] == 80 * 2**30
    assert {
        "id",
        "name",
        "peaks_flops_per_s",
        "bandwidth_bytes_per_s",
        "link",
        "domain_size",
        "tdp_w",
        "sources",
        "notes",
    } <= set(facts)


def test_gpus_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert "b200-sxm" in answered(capsys, "gpus", "list", "--vendor", "nvidia")
    assert len(json.loads(answered(capsys, "gpus", "list", "--json"))) == len(hw.load_catalogue())
    listed = answered(capsys, "gpus", "list", "--text", "h20")
    for words in ("third", "party", "bandwidth", "unsourced"):
        assert words in listed


def test_gpus_show_tells_source_and_confidence_of_each_figure(
    capsys: pytest.CaptureFixture[str],
) -> None:
    shown = answered(capsys, "gpus", "show", "h20-141gb")
    (line,) = [line for line in shown.splitlines() if "Unsourced: " in line]
    assert line.split()[0] == "bandwidth_bytes_per_s"


def test_models_list(capsys: pytest.CaptureFixture[str]) -> None:
    assert "Llama-3.1-70B" in answered(capsys, "models", "list", "--text", "llama-3.1")


def test_engines_list_and_show(capsys: pytest.CaptureFixture[str]) -> None:
    listed = answered(capsys, "engines", "list")
    assert "TensorRT-LLM" in listed
    assert "NVIDIA gpu, NVIDIA" in listed
    shown = answered(capsys, "engines", "show", "llama.cpp")
    assert "f16 cache" in shown  # the source of kv_default
    command = ("--engine-version", "0.17.0", "--gpu", "h100-sxm5", "--json")
    facts = json.loads(answered(capsys, "engines", "show", "vllm", *command))
    chunk = next(one for one in facts["figures"] if one["name"] == "chunk_tokens")
    assert (chunk["value"], chunk["unit"]) == (8192, "token")


def test_recommend_ranks_all_that_hold_it(capsys: pytest.CaptureFixture[str]) -> None:
    out = answered(
        capsys, "recommend", LLAMA, "--context", "8192", "--tpot-ms", "50", "--all", "--json"
    )
    answer = json.loads(out)
    rates = [choice["tokens_per_s_per_gpu"] for choice in answer["choices"]]
    assert rates == sorted(rates, reverse=True)
    assert len(rates) > 40
    assert all(choice["tpot_s"]["p50"] <= 0.05 for choice in answer["choices"])
    assert {"t4", "rtx-3090"} & {row["gpu"] for row in answer["refused"]} or answer["refused"]
    assert all(row["reason"] for row in answer["refused"])


def test_recommend_says_what_is_only_announced(capsys: pytest.CaptureFixture[str]) -> None:
    command = ("recommend", LLAMA, "--gpu", "mi455x", "--gpu", "mi355x")
    lines = answered(capsys, *command).splitlines()
    assert "1× mi455x (announced)," in lines[0]
    names = [line.split("  ")[0] for line in lines[2:] if line.startswith("mi")]
    assert names == ["mi455x (announced)", "mi355x"]


def test_kernels_sweep_and_roofline(capsys: pytest.CaptureFixture[str]) -> None:
    kernels = answered(capsys, "kernels", LLAMA, "--gpu", "h100-sxm5", "--batch", "8")
    assert "attention" in kernels
    assert "memory" in kernels
    lines = answered(
        capsys, "sweep", LLAMA, "--gpu", "h100-sxm5,b200-sxm", "--tp", "4,8", "--batch", "1,2"
    ).splitlines()
    assert len(lines) == 1 + 2 * 2 * 2
    assert "fp8" in answered(capsys, "roofline", "--gpu", "h100-sxm5")


def test_own_config_and_own_gpu(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config = tmp_path / "my-model.json"
    config.write_text(json.dumps(CONFIG), "utf-8")
    gpu = tmp_path / "gpu.toml"
    gpu.write_text(
        'id = "mine"\nname = "Mine"\nbandwidth_bytes_per_s = 4e12\nmemory_bytes = 96e9\n'
        'source = "a test"\n[peaks_flops_per_s]\nbf16 = 1.2e15\n',
        "utf-8",
    )
    out = answered(capsys, "plan", str(config), "--gpu", str(gpu), "--batch", "1", "--json")
    assert json.loads(out)["limits"]["ridge_point"] == 300


def test_context_beyond_the_model_is_a_note(capsys: pytest.CaptureFixture[str]) -> None:
    out = answered(capsys, *PLAN[:-1], "200000", "--batch", "1")
    assert "context_beyond_model" in out


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            ["plan", "meta-llama/Lama-3.1-70B-Instruct", "--gpu", "h100-sxm5"],
            ["model", "meta-llama/Llama-3.1-70B-Instruct"],
        ),
        (["plan", LLAMA, "--gpu", "h1000"], ["gpu", "h100-sxm5"]),
        ([*PLAN, "--batch", "0"], ["batch", "0"]),
        ([*PLAN, "--batch", "-4"], ["batch", "-4"]),
        ([*PLAN, "--batch", "many"], ["batch", "many"]),
        (["plan", LLAMA, "--gpu", "h100-sxm5", "--tp", "3"], ["tp", "64 attention heads"]),
        (["plan", LLAMA, "--gpu", "h100-sxm5", "--tp", "0"], ["tp"]),
        ([*PLAN, "--weights", "fp5"], ["weights", "fp8"]),
        ([*PLAN, "--kv", "fp5"], ["kv", "fp8"]),
        ([*PLAN, "--engine", "vlm"], ["engine", "vllm"]),
        ([*PLAN, "--concurrency", "8"], ["isl", "osl"]),
        (["plan", LLAMA], ["--gpu"]),
        ([*PLAN, "--gpu", "b200-sxm"], ["gpu", "2 times", "one --gpu GPU"]),
        ([*PLAN, "--batch", "1", "--batch=64"], ["batch", "one --batch N[,N…]"]),
        (["sweep", LLAMA, "--gpu", "h100-sxm5", "--gpu", "b200-sxm"], ["one --gpu GPU[,GPU…]"]),
        (["gpus", "list", "--vendor", "amd", "--vendor", "intel"], ["vendor", "one --vendor"]),
        (["scenario", "list", "--tag", "a", "--tag", "b"], ["tag", "one --tag"]),
        (["plan", "no-such-file.json", "--gpu", "h100-sxm5"], ["no-such-file.json"]),
        (["recommend", LLAMA], ["gpu", "--all"]),
        (["engines", "show", "vlm"], ["engine", "vllm"]),
        (["engines", "show", "vllm", "--engine-version", "new"], ["engine_version", "release"]),
        (["engines", "show", "trtllm", "--gpu", "mi300x"], ["engine", "mi300x", "vllm"]),
        (["fly"], ["fly"]),
    ],
)
def test_bad_input_is_one_line(
    change: list[str], words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    line = refused(capsys, *change)
    for word in words:
        assert word in line


def test_what_may_be_repeated_may(capsys: pytest.CaptureFixture[str]) -> None:
    command = ("roofline", "--gpu", "h100-sxm5", "--gpu", "b200-sxm", "--json", "--json")
    rows = json.loads(answered(capsys, *command))
    assert {row["gpu"] for row in rows} == {"h100-sxm5", "b200-sxm"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", ["config.json"]),
        ('{"model_type": "llama"', ["config.json"]),
        ("[1, 2]", ["object"]),
        (json.dumps(CONFIG | {"hidden_size": -1}), ["hidden_size", "-1"]),
        (json.dumps(CONFIG | {"num_hidden_layers": 10**12}), ["num_hidden_layers"]),
        (json.dumps(CONFIG | {"vocab_size": 10**40}), ["vocab_size"]),
        (json.dumps(CONFIG).replace("4096", "NaN"), ["config.json", "NaN"]),
        (json.dumps(CONFIG | {"hidden_size": "big"}), ["hidden_size"]),
        (json.dumps({k: v for k, v in CONFIG.items() if k != "hidden_size"}), ["hidden_size"]),
        ("[" * 100_000, ["config.json"]),
    ],
)
def test_bad_configs_are_one_line(
    text: str, words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "config.json"
    path.write_text(text, "utf-8")
    line = refused(capsys, "plan", str(path), "--gpu", "h100-sxm5")
    for word in words:
        assert word in line


def test_a_config_of_100_mb_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "config.json"
    with path.open("wb") as file:
        file.truncate(100_000_000)
    assert "config.json" in refused(capsys, "plan", str(path), "--gpu", "h100-sxm5")


def test_a_missing_format_is_emulated_with_a_note(capsys: pytest.CaptureFixture[str]) -> None:
    out = answered(
        capsys, "plan", LLAMA, "--gpu", "a100-sxm4-80gb", "--tp", "4", "--weights", "fp8"
    )
    assert "emulated_format" in out
    assert "bf16" in out


TABLES = (
    PLAN,
    [*PLAN[:-1], "1k,8k", "--batch", "1-64"],
    ["kernels", LLAMA, "--gpu", "h100-sxm5", "--prefill"],
    ["kernels", "--gpu", "h100-sxm5", "--gemm", "4096,4096,4096"],
    ["recommend", LLAMA, "--gpu", "h100-sxm5", "--gpu", "mi455x"],
    ["roofline", "--gpu", "b200-sxm"],
    ["gpus", "list"],
    ["gpus", "show", "h100-sxm5"],
    ["models", "list"],
    ["models", "show", LLAMA],
)


@pytest.mark.parametrize("command", TABLES, ids=" ".join)
def test_tables_fit_80_columns(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """What runs on is a sentence: the verdict, a title, a note, or an id too long for a line."""
    lines = answered(capsys, *command).splitlines()
    assert len(lines) > 2
    assert [line for line in lines if len(line) > 80 and "  " in line.strip()] == []


def test_a_plan_says_what_was_resolved_and_assumed(capsys: pytest.CaptureFixture[str]) -> None:
    out = answered(capsys, *PLAN, "--engine", "vllm")
    for words in ("H100 SXM5 80GB", "4 GPUs", "KV cache bf16", "vLLM 0.", "(assumed)"):
        assert words in out, words


def test_what_does_not_fit_has_no_rate(capsys: pytest.CaptureFixture[str]) -> None:
    """Memory holds 62 sequences of 8,192 tokens: 64 have neither a TPOT nor tokens/s."""
    lines = answered(capsys, *PLAN, "--batch", "62,64").splitlines()
    (fits,) = [line for line in lines if line.startswith("62 ")]
    (beyond,) = [line for line in lines if line.startswith("64 ")]
    assert "34 ms" in fits
    assert "does not fit" in beyond
    assert "ms" not in beyond
    only = answered(capsys, *PLAN, "--batch", "64")
    assert only.startswith("This load does not fit.")


def test_numbers_as_people_write_them(capsys: pytest.CaptureFixture[str]) -> None:
    out = answered(capsys, *PLAN[:-1], "8k", "--batch", "1-64", "--json")
    points = json.loads(out)["points"]
    assert [point["batch"] for point in points] == [1, 2, 4, 8, 16, 32, 64]
    assert {point["context"] for point in points} == {8192}


@pytest.mark.parametrize("picture", ["roofline", "intensity", "throughput"])
def test_plot_in_the_terminal(picture: str, capsys: pytest.CaptureFixture[str]) -> None:
    lines = answered(capsys, "plot", picture, *PLAN[1:]).splitlines()
    assert max(map(len, lines)) <= 80
    assert any("o" in line for line in lines)


def test_kernels_of_one_rank(capsys: pytest.CaptureFixture[str]) -> None:
    """Four ranks read a quarter of each matrix; the norm is whole on each."""
    model = ["kernels", "meta-llama/Llama-3.1-70B-Instruct", "--gpu", "h100-sxm5"]
    whole, part = (
        {
            row["name"]: row
            for row in json.loads(answered(capsys, *model, *more, "--json"))["kernels"]
        }
        for more in ([], ["--tp", "4"])
    )
    assert part["mlp_up"]["flops"] * 4 == whole["mlp_up"]["flops"]
    assert part["norm"]["bytes"] == whole["norm"]["bytes"]
    text = answered(capsys, *model, "--tp", "4")
    assert "on one of 4 ranks" in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 80
