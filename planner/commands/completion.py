"""Completion in a shell: ids of models and accelerators.

`eval "$(_PLANNER_COMPLETE=bash_source planner)"` turns it on in bash, `zsh_source` in zsh;
`_PLANNER_COMPLETE=fish_source planner | source` in fish.
"""

from __future__ import annotations

from collections.abc import Iterable

import click


def models(_context: click.Context, _param: click.Parameter, typed: str) -> list[str]:
    """Return the models whose id holds what was typed."""
    from planner.models.listing import all_facts

    names = (name for facts in all_facts() for name in (facts["id"], *facts["aliases"]))
    return _matching(names, typed)


def accelerators(_context: click.Context, _param: click.Parameter, typed: str) -> list[str]:
    """Return the accelerators whose id holds what was typed."""
    from planner.hw import load_catalogue

    return _matching(load_catalogue(), typed)


def _matching(ids: Iterable[str], typed: str) -> list[str]:
    """Those that begin so first: bash offers nothing else."""
    known = sorted(ids, key=lambda ident: not ident.lower().startswith(typed.lower()))
    return [ident for ident in known if typed.lower() in ident.lower()]
