"""How a replica is split, as each engine's arguments count it.

An engine counts tensor-parallel ranks either of one attention-DP rank (`ranks`) or of all of them
(`total`, `switch`), or splits by a list of shares (`layers`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from planner.handover.arguments import ArgumentParser, Fault, Given
from planner.handover.facts import EngineStart
from planner.handover.refusal import Unwritable
from planner.scenario import Scenario


@dataclass(slots=True)
class Split:
    """A split as read: the fields of it, what each rests on, and the GPUs it starts."""

    tp: int = 1
    pp: int = 1
    ep: int = 1
    attention_dp: int = 1
    replicas: int = 1
    """Replicas that one command starts."""
    local: int | None = None
    """Data-parallel ranks that one host of the command runs; None is all."""
    given: dict[str, Given] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)

    @property
    def gpus(self) -> int:
        """GPUs of one replica."""
        return self.tp * self.pp * self.attention_dp

    @property
    def gpus_started(self) -> int:
        """GPUs that one command starts on, over all its hosts."""
        return self.gpus * self.replicas


def read_split(facts: EngineStart, given: Mapping[str, Given], moe: bool, gpus: int) -> Split:
    """Return the split that a command line says.

    `moe` says whether the model has routed experts, `gpus` how many GPUs a container has (0 where
    that is not said).
    """
    return READERS[facts.split["rule"]](facts, given, moe, gpus)


def _count(split: Split, facts: EngineStart, given: Mapping[str, Given], name: str) -> int:
    """Return a count of the command line, 1 where it says none."""
    one = given.get(facts.split.get(name, ""))
    if one is None:
        return 1
    if isinstance(one.value, bool) or not isinstance(one.value, int) or not 1 <= one.value <= 2**20:
        split.faults.append(Fault(one.line, one.text, "takes a whole number above zero"))
        return 1
    if name in {"tp", "pp", "ep", "attention_dp"}:
        split.given[name] = one
    return one.value


def _switch(facts: EngineStart, given: Mapping[str, Given], name: str) -> Given | None:
    one = given.get(facts.split.get(name, ""))
    return one if one is not None and one.value is True else None


def _ranks(facts: EngineStart, given: Mapping[str, Given], moe: bool, gpus: int) -> Split:
    """Read ranks counted within one data-parallel rank (vLLM, LMDeploy)."""
    del gpus
    split = Split()
    split.tp, split.pp = (_count(split, facts, given, name) for name in ("tp", "pp"))
    ranks = _count(split, facts, given, "dp")
    if ranks > 1:
        name = "attention_dp" if moe else "replicas"
        setattr(split, name, ranks)
        split.given[name] = given[facts.split["dp"]]
        local = given.get(facts.split.get("dp_local", ""))
        split.local = local.value if local and isinstance(local.value, int) else None
    split.ep = _count(split, facts, given, "ep")
    if (switch := _switch(facts, given, "ep_switch")) and moe:
        split.ep = split.tp * split.attention_dp
        split.given["ep"] = switch
    return split


def _total(facts: EngineStart, given: Mapping[str, Given], moe: bool, gpus: int) -> Split:
    """Read ranks counted over all attention-DP ranks (SGLang)."""
    del moe, gpus
    split = Split()
    ranks, split.pp, split.ep, split.attention_dp = (
        _count(split, facts, given, name) for name in ("tp", "pp", "ep", "attention_dp")
    )
    copies = _count(split, facts, given, "dp")
    if copies > 1:
        if _switch(facts, given, "attention_switch"):
            split.attention_dp = copies
            split.given["attention_dp"] = given[facts.split["dp"]]
        else:
            split.replicas = copies
            split.given["replicas"] = given[facts.split["dp"]]
    split.tp = _within(split, ranks, facts)
    return split


def _within(split: Split, ranks: int, facts: EngineStart) -> int:
    if ranks % split.attention_dp == 0:
        return ranks // split.attention_dp
    one = split.given["attention_dp"]
    split.faults.append(Fault(one.line, one.text, f"does not divide {facts.split['tp']} = {ranks}"))
    split.attention_dp = 1
    return ranks


def _switched(facts: EngineStart, given: Mapping[str, Given], moe: bool, gpus: int) -> Split:
    """Read ranks of which attention is either split or held whole (TensorRT-LLM)."""
    del moe, gpus
    split = Split()
    split.tp, split.pp, split.ep = (
        _count(split, facts, given, name) for name in ("tp", "pp", "ep")
    )
    if (switch := _switch(facts, given, "attention_switch")) and split.tp > 1:
        split.tp, split.attention_dp = 1, split.tp
        split.given["attention_dp"] = switch
    return split


def _shares(facts: EngineStart, given: Mapping[str, Given], moe: bool, gpus: int) -> Split:
    """Read a list of shares (llama.cpp): by layers, or by rows of matrices."""
    del moe
    split = Split()
    shares, mode = given.get(facts.split["shares"]), given.get(facts.split["mode"])
    many = max(gpus, 1)
    if shares is not None:
        many = max(1, sum(part.strip() not in {"", "0"} for part in str(shares.value).split(",")))
    kind = str(mode.value) if mode else "layer"
    if kind == "none" or many == 1:
        return split
    name = "pp" if kind == "layer" else "tp"
    setattr(split, name, many)
    if one := shares or mode:
        split.given[name] = one
    return split


READERS: Mapping[str, Callable[[EngineStart, Mapping[str, Given], bool, int], Split]] = {
    "ranks": _ranks,
    "total": _total,
    "switch": _switched,
    "layers": _shares,
}


def write_split(
    facts: EngineStart, parser: ArgumentParser, scenario: Scenario, moe: bool
) -> dict[str, Any]:
    """Return the arguments of one replica's split. Raises Unwritable naming the field."""
    return WRITERS[facts.split["rule"]](facts, parser, scenario, moe)


def _above_one(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is True or value > 1}


def _write_ranks(
    facts: EngineStart, parser: ArgumentParser, scenario: Scenario, moe: bool
) -> dict[str, Any]:
    del parser
    names, ranks = facts.split, scenario.tp * scenario.attention_dp
    values = {"tp": scenario.tp, "dp": scenario.attention_dp}
    if scenario.pp > 1 and "pp" not in names:
        raise Unwritable(f"pp: {scenario.pp} is not of {facts.id}; accepted: 1")
    if scenario.attention_dp > 1 and not moe:
        raise Unwritable(f"attention_dp: a dense model has none with {facts.id}; accepted: 1")
    values["pp"] = scenario.pp
    if "ep" in names:
        values["ep"] = scenario.ep
    elif scenario.ep not in (1, ranks):
        raise Unwritable(f"ep: {scenario.ep} with {facts.id}; accepted: 1 or {ranks}")
    elif scenario.ep > 1 and not moe:
        raise Unwritable("ep: the model has no experts; accepted: 1")
    else:
        values["ep_switch"] = scenario.ep > 1
    return {names[key]: value for key, value in _above_one(**values).items()}


def _write_total(
    facts: EngineStart, parser: ArgumentParser, scenario: Scenario, moe: bool
) -> dict[str, Any]:
    del moe
    names = facts.split
    values = {"tp": scenario.tp * scenario.attention_dp, "pp": scenario.pp, "ep": scenario.ep}
    if names["attention_dp"] in parser.arguments:
        values["attention_dp"] = scenario.attention_dp
    elif scenario.attention_dp > 1:
        values |= {"dp": scenario.attention_dp, "attention_switch": True}
    return {names[key]: value for key, value in _above_one(**values).items()}


def _write_switch(
    facts: EngineStart, parser: ArgumentParser, scenario: Scenario, moe: bool
) -> dict[str, Any]:
    del parser, moe
    names = facts.split
    if scenario.attention_dp > 1 and scenario.tp > 1:
        raise Unwritable(f"tp: {scenario.tp} with attention_dp in {facts.id}; accepted: 1")
    values = _above_one(tp=scenario.tp * scenario.attention_dp, pp=scenario.pp, ep=scenario.ep)
    written = {names[key]: value for key, value in values.items()}
    return written | ({names["attention_switch"]: True} if scenario.attention_dp > 1 else {})


def _write_shares(
    facts: EngineStart, parser: ArgumentParser, scenario: Scenario, moe: bool
) -> dict[str, Any]:
    del parser, moe
    for name in ("ep", "attention_dp"):
        if getattr(scenario, name) > 1:
            raise Unwritable(f"{name}: {getattr(scenario, name)} is not of {facts.id}; accepted: 1")
    if scenario.tp > 1 and scenario.pp > 1:
        raise Unwritable(f"pp: {scenario.pp} with tp in {facts.id}; accepted: 1")
    gpus = math.prod((scenario.tp, scenario.pp))
    if gpus == 1:
        return {facts.split["mode"]: "none"}
    mode = "row" if scenario.tp > 1 else "layer"
    return {facts.split["mode"]: mode, facts.split["shares"]: ",".join(["1"] * gpus)}


WRITERS: Mapping[str, Callable[[EngineStart, ArgumentParser, Scenario, bool], dict[str, Any]]] = {
    "ranks": _write_ranks,
    "total": _write_total,
    "switch": _write_switch,
    "layers": _write_shares,
}
