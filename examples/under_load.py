"""How many users one replica serves within limits on TTFT and TPOT.

    python examples/under_load.py

Every user keeps one request in flight: 2,000 tokens in and 300 out on average, as spread as chats
are. More users share the engine's steps, so that tokens/s rise and everybody waits longer.
"""

from __future__ import annotations

from planner import Plan, Scenario, plan
from planner.workload.distributions import Lognormal, MeanAndSpread

TTFT_MS, TPOT_MS = 2000, 50


def ask(users: int) -> Plan:
    return plan(
        Scenario(
            model="Qwen/Qwen3-32B",
            gpu="h100-sxm5",
            tp=2,
            engine="vllm",
            weights="fp8",
            concurrency=users,
            isl=Lognormal(lognormal=MeanAndSpread(mean=2000, cv=1.0)),
            osl=Lognormal(lognormal=MeanAndSpread(mean=300, cv=1.0)),
        )
    )


def main() -> None:
    print("users  running  TTFT ms p90  TPOT ms p90  output tokens/s  within limits")
    best = 0
    for users in (1, 4, 8, 16, 32, 64, 128, 256):
        serving = ask(users).serving
        assert serving is not None
        ttft_ms, tpot_ms = serving.ttft_s.p90 * 1e3, serving.tpot_s.p90 * 1e3
        within = ttft_ms <= TTFT_MS and tpot_ms <= TPOT_MS
        best = users if within else best
        print(
            f"{users:5}  {serving.running_batch:7.1f}  {ttft_ms:11.0f}  {tpot_ms:11.1f}  "
            f"{serving.output_tokens_per_s:15.0f}  {'yes' if within else 'no'}"
        )
    print(f"\nOf these, {best} users is the most within {TTFT_MS} ms and {TPOT_MS} ms.")


if __name__ == "__main__":
    main()
