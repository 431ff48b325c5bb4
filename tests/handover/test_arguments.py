"""Command lines as argparse, click and llama.cpp's own parser read them.

Spellings, types and values are those of the releases' own argument tables
(`planner/engines/data/parsers`); the rules are those of Python's argparse (abbreviations,
`--no-…`, `--flag=value`, one value or several) and of vLLM's documentation (`8k`, `8K`, JSON,
dotted keys).
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.handover.arguments import Argument, Parsed, converted, parser_of, parser_versions
from planner.handover.facts import image_for, image_of, started_engines
from planner.handover.shell import script

COUNT = Argument("n", "int", 1, ("--n",))
NUMBER = Argument("x", "float|None", None, ("--x",))
TEXT = Argument("t", "str|None", None, ("--t",))
CHOICE = Argument("c", "auto|float16|bfloat16", "auto", ("--c",))
LEVELS = Argument("l", "0|1|2|3", "2", ("--l",))
OBJECT = Argument("o", "dict|None", None, ("--o",))
OBJECT_OR_TEXT = Argument("o", "dict|str", None, ("--o",))


def parsed(engine: str, line: str, version: str | None = None) -> Parsed:
    (command,) = script(f"x {line}").commands
    return parser_of(engine, version).parse(command[1:])


def values(engine: str, line: str, version: str | None = None) -> dict[str, Any]:
    result = parsed(engine, line, version)
    assert result.faults == []
    return {name: one.value for name, one in result.given.items()}


@pytest.mark.parametrize(
    ("argument", "text", "value"),
    [
        (COUNT, "8192", 8192),
        (COUNT, "-1", -1),
        (COUNT, "8k", 8000),  # a thousand in small letters
        (COUNT, "8K", 8192),  # 1024 in capitals
        (COUNT, "2m", 2_000_000),
        (COUNT, "2M", 2 * 2**20),
        (COUNT, "1Gi", 2**30),
        (COUNT, "25.6k", 25_600),
        (COUNT, "2.3k", 2300),  # 2299.9999999999995 as a float
        (COUNT, "auto", "auto"),
        (NUMBER, "0.9", 0.9),
        (NUMBER, "1e-3", 0.001),
        (NUMBER, "1", 1.0),
        (TEXT, "8k", "8k"),
        (TEXT, "{a", "{a"),
        (CHOICE, "bfloat16", "bfloat16"),
        (LEVELS, "3", 3),
        (OBJECT, '{"a": [1, 2]}', {"a": [1, 2]}),
        (OBJECT_OR_TEXT, '{"a": null}', {"a": None}),
        (OBJECT_OR_TEXT, "name", "name"),
    ],
)
def test_values_have_the_type_of_their_argument(argument: Argument, text: str, value: Any) -> None:
    result = converted(argument, text)
    assert result == value
    assert type(result) is type(value)


@pytest.mark.parametrize(
    ("argument", "text", "message"),
    [
        (COUNT, "four", "takes a whole number"),
        (COUNT, "1.5", "takes a whole number"),
        (COUNT, "0.0001k", "takes a whole number"),
        (COUNT, "1x", "takes a whole number"),
        (COUNT, "9" * 40, "takes a whole number"),
        (NUMBER, "half", "takes a number"),
        (NUMBER, "nan", "takes a finite number"),
        (NUMBER, "-inf", "takes a finite number"),
        (CHOICE, "fp16", "takes auto, float16, bfloat16"),
        (LEVELS, "4", "takes 0, 1, 2, 3"),
        (OBJECT, "{a: 1}", "takes JSON, which this is not"),
        (OBJECT, "[" * 50_000, "takes JSON, which this is not"),
    ],
)
def test_values_that_an_argument_does_not_take(argument: Argument, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        converted(argument, text)


@settings(max_examples=40)
@given(st.integers(0, 10**6), st.sampled_from(["", "k", "m", "g"]))
def test_small_letters_are_powers_of_a_thousand(number: int, unit: str) -> None:
    power = {"": 0, "k": 1, "m": 2, "g": 3}[unit]
    assert converted(COUNT, f"{number}{unit}") == number * 1000**power
    if unit:
        assert converted(COUNT, f"{number}{unit.upper()}") == number * 1024**power


@pytest.mark.parametrize(
    ("type_", "switch", "many", "choices"),
    [
        ("bool", True, False, ()),
        ("bool|None", True, False, ()),
        ("bool|str", False, False, ()),
        ("int", False, False, ()),
        ("list[str]", False, True, ()),
        ("List[int]|None", False, True, ()),
        ("a|b|None", False, False, ("a", "b")),
        ("a|b|str", False, False, ()),  # any other text, too
        ("a|int", False, False, ()),
        ("Path|None", False, False, ()),
    ],
)
def test_what_a_type_says(type_: str, switch: bool, many: bool, choices: tuple[str, ...]) -> None:
    argument = Argument("a", type_, None, ("-a", "--a-b", "--a"))
    assert (argument.is_switch, argument.takes_many, argument.choices) == (switch, many, choices)
    assert argument.flag == "--a-b"
    assert Argument("a", type_, None, ("-a",)).flag == "-a"


@pytest.mark.parametrize(
    ("line", "result"),
    [
        ("--max-num-seqs 8", {"max_num_seqs": 8}),
        ("--max-num-seqs=8", {"max_num_seqs": 8}),
        ("--max_num_seqs 8", {"max_num_seqs": 8}),  # vLLM takes both spellings
        ("-tp 2", {"tensor_parallel_size": 2}),
        ("-tp=2", {"tensor_parallel_size": 2}),
        ("--tensor-parallel 2", {"tensor_parallel_size": 2}),  # short for one argument alone
        ("--max-model-len 8k", {"max_model_len": 8000}),
        ("--enforce-eager", {"enforce_eager": True}),
        ("--no-enforce-eager", {"enforce_eager": False}),
        ("--enforce-eager=false", {"enforce_eager": False}),
        ("--enforce-eager=1", {"enforce_eager": True}),
        ("--gpu-memory-utilization .9", {"gpu_memory_utilization": 0.9}),
        (
            """--speculative-config '{"method": "mtp", "num_speculative_tokens": 2}'""",
            {"speculative_config": {"method": "mtp", "num_speculative_tokens": 2}},
        ),
        (
            "--speculative-config.method mtp --speculative-config.num_speculative_tokens 2",
            {"speculative_config": {"method": "mtp", "num_speculative_tokens": 2}},
        ),
        ("--max-num-seqs 8 --max-num-seqs 16", {"max_num_seqs": 16}),
    ],
)
def test_arguments_of_vllm(line: str, result: dict[str, Any]) -> None:
    assert values("vllm", line) == result


@pytest.mark.parametrize(
    ("engine", "line", "result"),
    [
        ("sglang", "--tp-size 4", {"tp_size": 4}),
        ("sglang", "--tensor-parallel-size 4", {"tp_size": 4}),
        (
            "sglang",
            "--mem-fraction-static 0.8 --disable-radix-cache",
            {"mem_fraction_static": 0.8, "disable_radix_cache": True},
        ),
        ("trtllm", "--kv_cache_free_gpu_memory_fraction 0.8", {"free_gpu_memory_fraction": 0.8}),
        (
            "llama.cpp",
            "-c 8192 -np 4 -ngl 99",
            {"ctx_size": 8192, "parallel": 4, "n_gpu_layers": 99},
        ),
        ("llama.cpp", "--no-cache-prompt", {"cache_prompt": False}),
        ("lmdeploy", "--session-len 8192 --tp 2", {"session_len": 8192, "tp": 2}),
    ],
)
def test_arguments_of_others(engine: str, line: str, result: dict[str, Any]) -> None:
    assert values(engine, line) == result


@pytest.mark.parametrize(
    ("line", "text", "why"),
    [
        ("--nonsense", "--nonsense", "not an argument of vllm 0.33.0"),
        # What follows is most likely its value, and no word that stands alone.
        ("--nonsense 3", "--nonsense 3", "not an argument of vllm 0.33.0"),
        ("--nonsense --enforce-eager", "--nonsense", "not an argument of vllm 0.33.0"),
        ("--max-num", "--max-num", "not an argument of vllm 0.33.0"),  # short for several
        ("--no-max-num-seqs", "--no-max-num-seqs", "not an argument of vllm 0.33.0"),
        ("--max-num-seqs", "--max-num-seqs", "needs a value"),
        ("--max-num-seqs many", "--max-num-seqs many", "takes a whole number"),
        ("--enforce-eager=maybe", "--enforce-eager=maybe", "takes no value"),
        (
            "--max-num-seqs $N",
            "--max-num-seqs $N",
            "its value comes from a variable that is not given here",
        ),
    ],
)
def test_words_that_are_not_understood(line: str, text: str, why: str) -> None:
    result = parsed("vllm", line, "0.33.0")
    (fault,) = result.faults
    assert (fault.text, fault.why, fault.line) == (text, why, 1)
    assert result.rest == []


def test_a_variable_matters_where_a_plan_depends_on_it() -> None:
    """The key of an API may well come from the environment."""
    result = parsed("vllm", "--api-key $KEY --port $PORT")
    assert result.faults == []
    assert set(result.given) == {"api_key", "port"}


def test_the_last_of_a_repeated_argument_counts() -> None:
    result = parsed("vllm", "-tp 2 \\\n --tensor-parallel-size 4")
    assert result.given["tensor_parallel_size"].value == 4
    assert result.given["tensor_parallel_size"].line == 2
    assert [(one.value, one.line) for one in result.repeated] == [(2, 1)]


def test_words_that_belong_to_no_argument() -> None:
    result = parsed("vllm", "model -tp 2 other -1 -")
    assert [word.text for word in result.rest] == ["model", "other", "-1", "-"]


@pytest.mark.parametrize("engine", started_engines())
def test_a_version_is_read_as_the_newest_release_up_to_it(engine: str) -> None:
    known = parser_versions(engine)
    assert [parser_of(engine, version).version for version in known] == list(known)
    newest = known[-1]
    assert parser_of(engine).version == newest
    assert parser_of(engine, "2026-11-30").version == newest  # a date is of no order with releases
    assert parser_of(engine, "9999999" if engine == "llama.cpp" else "999.0").version == newest
    assert parser_of(engine, "b1000" if engine == "llama.cpp" else "0.0.1").version == known[0]
    if len(known) > 1:
        assert parser_of(engine, f"{known[0]}").version == known[0]


@pytest.mark.parametrize("engine", started_engines())
def test_every_argument_is_found_by_each_of_its_flags(engine: str) -> None:
    """And a flag that negates is a flag of a switch."""
    for version in parser_versions(engine):
        parser = parser_of(engine, version)
        assert parser.used
        for argument in parser.arguments.values():
            match = parser.argument(argument.flag)
            assert match is not None
            # Two arguments may list one alias; it is then of the one that spells itself so.
            assert match[0].flag == argument.flag


@pytest.mark.parametrize(
    ("image", "engine", "version"),
    [
        ("vllm/vllm-openai:v0.11.0", "vllm", "0.11.0"),
        ("vllm/vllm-openai:v0.11.0-x86_64", "vllm", "0.11.0"),
        ("vllm/vllm-openai:latest", "vllm", None),
        ("vllm/vllm-openai", "vllm", None),
        ("registry.example:5000/mirror/vllm-openai:v0.10.2", "vllm", "0.10.2"),
        ("vllm/vllm-openai:v0.11.0@sha256:00ff", "vllm", "0.11.0"),
        ("lmsysorg/sglang:v0.5.3.post1-cu126", "sglang", "0.5.3.post1"),
        ("nvcr.io/nvidia/tensorrt-llm/release:1.2.0rc3", "trtllm", "1.2.0rc3"),
        ("ghcr.io/ggml-org/llama.cpp:server-cuda-b6500", "llama.cpp", "6500"),
        ("ghcr.io/ggml-org/llama.cpp:server-cuda", "llama.cpp", None),
        ("openmmlab/lmdeploy:v0.10.1-cu12", "lmdeploy", "0.10.1"),
        # These images count releases of their own.
        ("nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.0.0", "vllm", None),
        ("ghcr.io/llm-d/llm-d-cuda:v0.4.0", "vllm", None),
        ("nginx:1.27", None, None),
        ("", None, None),
    ],
)
def test_images(image: str, engine: str | None, version: str | None) -> None:
    assert image_of(image) == (engine, version)


@pytest.mark.parametrize(
    ("engine", "version", "image"),
    [
        ("vllm", "0.11.0", "vllm/vllm-openai:v0.11.0"),
        ("vllm", "v0.11.0", "vllm/vllm-openai:v0.11.0"),
        ("vllm", None, "vllm/vllm-openai:v9.9"),
        ("llama.cpp", "b6500", "ghcr.io/ggml-org/llama.cpp:server-cuda-b6500"),
        ("llama.cpp", None, "ghcr.io/ggml-org/llama.cpp:server-cuda"),
    ],
)
def test_images_to_start(engine: str, version: str | None, image: str) -> None:
    assert image_for(engine, version, "9.9") == image
    assert image_of(image)[0] == engine
