"""Which accelerator decodes a model for the least money, within a limit on the time per token.

    python examples/cheapest_gpu.py [MODEL] [TPOT_MS]

The limit holds at the 90th percentile of the prediction's uncertainty. Prices are the median of
published on-demand prices; accelerators without one, or not yet for sale, are left out.
"""

from __future__ import annotations

import sys

from planner.plans.recommend import RecommendationRequest, recommend


def main(model: str = "meta-llama/Llama-3.1-70B-Instruct", tpot_ms: str = "40") -> None:
    request = RecommendationRequest(
        model=model, context=8192, tpot_ms=float(tpot_ms), percentile=90, weights="fp8"
    )
    recommendation = recommend(request)
    priced = [
        (choice.usd_per_million_tokens, choice)
        for choice in recommendation.choices
        if choice.usd_per_million_tokens is not None and choice.status == "available"
    ]
    priced.sort(key=lambda pair: pair[0])
    print(f"{'accelerator':22} tp  batch  binds      ms/token  $/M tokens")
    for usd, choice in priced[:8]:
        milliseconds = choice.tpot_s.p90 * 1e3
        print(
            f"{choice.gpu:22} {choice.tp:2}  {choice.batch:5}  {choice.binds:9}  "
            f"{milliseconds:8.1f}  {usd:10.2f}"
        )
    refused = len(recommendation.refused)
    print(f"{refused} accelerators cannot hold the model or miss the limit; for example:")
    for refusal in recommendation.refused[:2]:
        print(f"  {refusal.gpu}: {refusal.reason}")


if __name__ == "__main__":
    main(*sys.argv[1:])
