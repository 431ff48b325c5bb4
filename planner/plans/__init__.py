"""Questions answered: plan, sweep, recommend, advice."""
