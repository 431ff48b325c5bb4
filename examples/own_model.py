"""What a model that exists only as a config, on a GPU that exists only as a preview, would do.

    python examples/own_model.py

Both are plain objects: the fields of a config.json, and the figures of a datasheet. The question
is how much a cache of fewer heads would help, before anybody trains the model.
"""

from __future__ import annotations

from typing import Any

from planner import Scenario, plan

CONFIG: dict[str, Any] = {
    "model_type": "llama",
    "hidden_size": 5120,
    "num_hidden_layers": 48,
    "num_attention_heads": 40,
    "num_key_value_heads": 8,
    "intermediate_size": 17408,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
GPU: dict[str, Any] = {
    "id": "preview",
    "name": "Preview 144GB",
    "bandwidth_bytes_per_s": 5.0e12,
    "memory_bytes": 144 * 2**30,
    "peaks_flops_per_s": {"bf16": 1.3e15, "fp8": 2.6e15},
    "source": "vendor preview, 2026-11",
}


def main() -> None:
    for kv_heads in (8, 4, 2):
        config = CONFIG | {"num_key_value_heads": kv_heads}
        answer = plan(Scenario(model=config, gpu=GPU, batch=[16], context=[32768]))
        point, memory = answer.points[0], answer.memory
        print(
            f"{kv_heads} KV heads: {memory.kv_bytes_per_token / 1e3:.0f} kB a token, "
            f"at most {memory.max_batch} sequences of 32768 tokens; at batch 16 "
            f"{point.tpot_s.p50 * 1e3:.1f} ms a token ({point.tpot_s.p10 * 1e3:.1f} to "
            f"{point.tpot_s.p90 * 1e3:.1f}), {point.bound} bound"
        )
    print("\nWhat these answers assume:")
    for note in answer.notes:
        print(f"  {note.code}: {note.text}")


if __name__ == "__main__":
    main()
