"""The busiest of the ranks that experts are spread over: a step waits for it.

A rank of expert parallelism holds E/n whole experts, which tokens choose by chance: what it gets
varies about the mean, and the step of a layer ends with the rank that got most. Tensor parallelism
cuts every expert, so that all ranks have the same work. Nothing is balanced or replicated here, as
engines start without that.
"""

from __future__ import annotations

from functools import cache
from statistics import NormalDist

import numpy as np

from planner.roofline import Array, Numeric


@cache
def largest_of(ranks: int) -> float:
    """Return the expected largest of `ranks` standard normal values [-].

    Φ⁻¹((n − 3/8)/(n + 1/4)) (Blom 1958), within 0.03 of the exact 0, 0.564, 1.029, 1.424, 1.766 of
    1, 2, 4, 8 and 16.
    """
    return NormalDist().inv_cdf((ranks - 0.375) / (ranks + 0.25)) if ranks > 1 else 0.0


def experts_on_busiest(experts: Numeric, hit: Numeric, ranks: int) -> Array:
    """Return the distinct experts hit on the busiest of `ranks` ranks, times the ranks [-].

    Each of a rank's E/n experts is hit with probability p = hit/E: E/n·p on average with a variance
    of E/n·p·(1 − p), and the largest of n such counts, at most all of the rank's.

    Example:
        256 experts of which 64 are hit, on 8 ranks: 8 + 1.43·√(32·¼·¾) = 11.5 on one, 92 on all.

        >>> round(float(experts_on_busiest(256, 64, 8)))
        92
    """
    held = np.divide(experts, ranks)
    share = np.divide(hit, experts)
    spread = np.sqrt(held * share * np.maximum(1.0 - share, 0.0))
    return np.asarray(ranks * np.minimum(held * share + largest_of(ranks) * spread, held))


def tokens_on_busiest(
    experts: Numeric, top_k: Numeric, tokens: Numeric, ranks: int, spread: float
) -> Array:
    """Return the tokens of the busiest of `ranks` ranks over those of all on average [-].

    A rank's share of the choices has a squared coefficient of variation of n·s/E by the popularity
    of its experts (`kernels.skewed_distinct_experts`) and of (n − 1)/(k·T) by chance; none gets
    more than one choice of every token for each of its experts.

    Example:
        256 experts of which a token visits 8, 1024 tokens, 8 ranks, s = 1: 1 + 1.43·√(8/256 +
        7/8192).

        >>> round(float(tokens_on_busiest(256, 8, 1024, 8, 1.0)), 3)
        1.257
    """
    variance = np.divide(ranks * spread, experts) + np.divide(
        ranks - 1.0, np.maximum(np.multiply(top_k, tokens), 1.0)
    )
    most = np.minimum(ranks, np.divide(experts, top_k))
    return np.asarray(np.minimum(1.0 + largest_of(ranks) * np.sqrt(variance), most))
