"""Sessions: requests that begin with what was said before, and how much of them a cache has."""

from __future__ import annotations

import numpy as np

from planner.errors import InvalidInput
from planner.roofline import Array, Numeric


class InvalidSession(InvalidInput):
    """Turns that leave no tokens for the user; names the field."""


def session_hit(
    isl: float, osl: float, turns: int, prefix_tokens: int, held: Numeric = 1.0
) -> Array:
    """Return the share of input tokens found in the prefix cache [-].

    Turn k of a session has the common prefix P, k messages of u tokens and k − 1 answers of OSL:
    ISL = P + u·(T + 1)/2 + OSL·(T − 1)/2 on average over T turns. New is the message alone, where
    the cache still holds the session (a share `held` of the time); the prefix is held by all
    others' requests. `held` broadcasts. Raises InvalidSession.
    """
    if prefix_tokens >= isl:
        raise InvalidSession(
            f"prefix_tokens: {prefix_tokens} leave nothing of an input of {isl:g}; accepted: less"
        )
    message = (isl - prefix_tokens - osl * (turns - 1) / 2) * 2 / (turns + 1)
    if message <= 0:
        raise InvalidSession(
            f"turns: {turns} with answers of {osl:g} tokens exceed an input of {isl:g} on average; "
            f"accepted: fewer, or a longer isl"
        )
    earlier = isl - prefix_tokens - message
    return np.asarray((prefix_tokens + np.asarray(held) * earlier) / isl)
