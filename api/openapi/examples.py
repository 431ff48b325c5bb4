"""One request that works for every operation that takes a body, and one answer of every one."""

from __future__ import annotations

import json
from importlib.resources import files
from typing import Any

SCENARIO: dict[str, Any] = {
    "name": "70B on four H100",
    "model": "meta-llama/Llama-3.1-70B-Instruct",
    "gpu": "h100-sxm5",
    "tp": 4,
    "batch": [1, 16, 64],
    "context": [8192],
    "tags": ["chat"],
}
CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "torch_dtype": "bfloat16",
}
EXAMPLES: dict[str, Any] = {
    "createPlan": SCENARIO,
    "createScenario": SCENARIO,
    "replaceScenario": SCENARIO,
    "putScenario": {**SCENARIO, "name": None},
    "changeScenario": {"tp": 8, "weights": "fp8", "notes": None},
    "createScenarios": {
        "scenarios": [{**SCENARIO, "name": "TP 4"}, {**SCENARIO, "name": "TP 8", "tp": 8}]
    },
    "createSweep": {
        "scenario": SCENARIO,
        "gpu": ["h100-sxm5", "h200-sxm"],
        "tp": [4, 8],
        "batch": [1, 64],
    },
    "createRecommendation": {
        "model": "meta-llama/Llama-3.1-70B-Instruct",
        "gpu": ["h200-sxm", "b200-sxm"],
        "context": 8192,
        "tpot_ms": 30.0,
    },
    "createFleet": {
        "pools": [
            {
                "model": "meta-llama/Llama-3.1-70B-Instruct",
                "gpu": "h100-sxm5",
                "tp": 4,
                "engine": "vllm",
            }
        ],
        "requests_per_s_by_window": [2, 1, 1, 4, 9, 12, 10, 6],
        "isl": 1024,
        "osl": 256,
        "window_s": 10800,
        "tpot_ms": 50.0,
    },
    "createRoofline": {
        "model": "meta-llama/Llama-3.1-8B-Instruct",
        "gpu": "h100-sxm5",
        "batch": 16,
        "context": 4096,
    },
    "createComparison": {
        "name": "FP8 against BF16 weights",
        "scenarios": [
            {**SCENARIO, "name": "BF16", "weights": "bf16", "batch": [32]},
            {**SCENARIO, "name": "FP8", "weights": "fp8", "batch": [32]},
        ],
    },
    "createCheck": {
        "files": {
            "start.sh": "vllm serve meta-llama/Llama-3.1-70B-Instruct -tp 4 --max-model-len 32768"
        },
        "question": {
            "gpu": "h100-sxm5",
            "concurrency": 32,
            "isl": 1024,
            "osl": 256,
            "tpot_ms": 40.0,
        },
    },
    "createModel": {"id": "my-finetune", "config": CONFIG},
    "createAccelerator": {
        "id": "h100-measured",
        "spec": {"base": "h100-sxm5", "bandwidth_bytes_per_s": 3.0e12, "source": "our own copies"},
    },
    "createMeasurement": {
        "backend": "vllm",
        "model_id": "meta-llama/Llama-3.1-8B-Instruct",
        "num_prompts": 320,
        "max_concurrency": 32,
        "request_rate": "inf",
        "completed": 320,
        "duration": 63.25,
        "total_input_tokens": 327680,
        "total_output_tokens": 163840,
        "mean_ttft_ms": 182.4,
        "mean_tpot_ms": 11.86,
    },
    "createJob": {
        "kind": "sweep",
        "question": {"scenario": SCENARIO, "gpu": ["h100-sxm5", "h200-sxm"], "tp": [4, 8]},
    },
    "importWorkspace": {
        "format": "decode-planner-workspace/1",
        "workspace": "default",
        "exported_at": "2026-11-29T12:00:00Z",
        "models": [{"id": "my-finetune", "config": CONFIG}],
        "accelerators": [],
        "scenarios": [],
        "comparisons": [],
    },
}
ANSWERS: dict[str, Any] = json.loads(
    files("api.openapi").joinpath("answers.json").read_text("utf-8")
)
"""Written by tools/api_examples.py."""
