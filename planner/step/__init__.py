"""One decode or prefill step: how it is split, its work, its time and its limits."""
