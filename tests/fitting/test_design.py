"""The design of a fit on problems of a few unknowns, whose answers are known."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import sparse

from planner.calibration.subject import Subject
from planner.fitting.fit import Design, Effects, Normal, Priors, Slots, fit, merged
from planner.fitting.observations import set_weights
from planner.runs.rows import Row
from planner.step.timing import Features, Item


def priors(**changes: object) -> Priors:
    plain = {
        "memory": {"values": {"gemm": 0.5}, "sd": 0.3, "levels": []},
        "compute": {"values": {"gemm": 0.5}, "sd": 0.3, "levels": []},
        "launch_s": {"values": {"gemm": 1e-6}, "sd": 0.5, "levels": []},
        "visit_s": {"values": {}, "sd": 1.0, "levels": []},
        "scale": {"values": {"decode": 1.0}, "sd": 0.2, "levels": []},
    }
    parameters = {name: {**row, **changes.get(name, {})} for name, row in plain.items()}
    return Priors.of(
        {
            "parameters": parameters,
            "sharpness": {},
            "routing_spread": 0.0,
            "speculation": {"drafts": 1, "accepted": 1.5},
        }
    )


def features(compute: float = 0.0, memory: float = 0.0, launches: float = 0.0) -> Features:
    return Features(*(np.full((1, 1), x) for x in (compute, memory, launches, 0.0)))


def design_of(given: Priors, times: list[tuple[str, Features]], phase: str = "decode") -> Design:
    """A row of one gemm for each of some accelerators."""
    design = Design(given)
    for row, (gpu, asked) in enumerate(times):
        design.add(
            (Item("gemm", "bf16"),),
            Subject({"gpu": gpu, "family": gpu[0]}),
            phase,
            asked,
            np.array([row]),
            np.array([1.0]),
        )
    return design


def test_effects_and_slots_are_known_again() -> None:
    effects, slots = Effects(), Slots()
    assert [effects.at("memory", level, key, 0.1) for level, key in ((0, "a"), (1, "a"))] == [0, 1]
    assert effects.at("memory", 0, "a", 0.9) == 0
    assert effects.sd == [0.1, 0.1]
    assert [slots.at(0.0, m) for m in ((0,), (0, 1), (0,))] == [0, 1, 0]
    assert slots.at(1.0, (0,)) == 2
    assert slots.matrix(3).toarray().tolist() == [[1, 0, 0], [1, 1, 0], [1, 0, 0]]


def test_a_row_takes_an_effect_of_its_kind_and_of_each_level_it_has_a_tag_for() -> None:
    levels = [[["kind", "family"], 0.2], [["kind", "gpu"], 0.1], [["kind", "nothing"], 0.1]]
    design = Design(priors(memory={"levels": levels}))
    slot = design.slot("memory", Subject({"gpu": "h1", "family": "h"}), "gemm")
    assert design.slots["memory"].members[slot] == (0, 1, 2)
    assert list(design.effects.index) == [
        ("memory", -1, "gemm"),
        ("memory", 0, "gemm|h"),
        ("memory", 1, "gemm|h1"),
    ]
    assert design.effects.sd == [0.3, 0.2, 0.1]
    assert design.slots["memory"].base[slot] == pytest.approx(math.log(0.5))


@pytest.mark.parametrize(
    ("name", "base"),
    # Kinds without a value: a full share, no floor, no scale.
    [("memory", 0.0), ("compute", 0.0), ("scale", 0.0), ("launch_s", -50.0), ("visit_s", -50.0)],
)
def test_kinds_without_a_value(name: str, base: float) -> None:
    design = Design(priors())
    slot = design.slot(name, Subject({}), "unknown")
    assert design.slots[name].base[slot] == base
    assert design.slots[name].members[slot] == ()


@pytest.mark.parametrize(
    ("asked", "seconds"),
    [
        # Half of the bandwidth, half of the peak, one launch of 1 µs; whichever is longer.
        (features(memory=1e-3), 2e-3),
        (features(compute=1e-3), 2e-3),
        (features(compute=1e-3, memory=3e-3), 6e-3),
        (features(memory=1e-3, launches=100.0), 2.1e-3),
        (features(launches=5.0), 5e-6),
    ],
)
def test_time_of_a_row_at_the_priors(asked: Features, seconds: float) -> None:
    problem = design_of(priors(), [("a1", asked)]).close(1)
    assert problem.predict(np.zeros(len(problem.sd)))[0] == pytest.approx(seconds)


def test_rows_sum_their_items_with_their_coefficients() -> None:
    """Ten steps of one item and two of another: 10·2 + 2·4 ms."""
    design = Design(priors())
    for memory, times in ((1e-3, 10.0), (2e-3, 2.0)):
        design.add(
            (Item("gemm"),),
            Subject({"gpu": "a1"}),
            "decode",
            features(memory=memory),
            np.array([0]),
            np.array([times]),
        )
    problem = design.close(1)
    assert problem.predict(np.zeros(len(problem.sd)))[0] == pytest.approx(28e-3)


def test_a_scale_is_of_the_phase() -> None:
    given = priors(scale={"values": {"decode": 1.5, "prompt": 3.0}})
    for phase, factor in (("decode", 1.5), ("prompt", 3.0), ("other", 1.0)):
        problem = design_of(given, [("a1", features(memory=1e-3))], phase).close(1)
        assert problem.predict(np.zeros(len(problem.sd)))[0] == pytest.approx(2e-3 * factor)


def test_effects_that_always_meet_are_one_unknown() -> None:
    """Kind, family and part of the only row: variances 0.09, 0.04 and 0.01 of 0.14."""
    levels = [[["kind", "family"], 0.2], [["kind", "gpu"], 0.1]]
    design = design_of(priors(memory={"levels": levels}), [("a1", features(memory=1e-3))])
    share, sd = merged(design)
    (unknown,) = {int(c) for r, c in zip(*share.nonzero(), strict=True) if r < 3}
    assert share.toarray()[:3, unknown] == pytest.approx([0.09 / 0.14, 0.04 / 0.14, 0.01 / 0.14])
    assert sd[unknown] == pytest.approx(math.sqrt(0.14))


def test_effects_that_meet_apart_are_unknowns_of_their_own() -> None:
    levels = [[["kind", "gpu"], 0.1]]
    rows = [("a1", features(memory=1e-3)), ("b1", features(memory=1e-3))]
    design = design_of(priors(memory={"levels": levels}), rows)
    share, sd = merged(design)
    named = {
        key: position
        for (name, _, key), position in design.effects.index.items()
        if name == "memory"
    }
    columns = {key: int(share[position].nonzero()[1][0]) for key, position in named.items()}
    assert len(set(columns.values())) == 3
    assert sd[columns["gemm"]] == pytest.approx(0.3)
    assert sd[columns["gemm|a1"]] == pytest.approx(0.1)


def test_normal_equations_of_two_unknowns() -> None:
    """JᵀJ + Λ = [[5, 2], [2, 5]] + [[1, 0], [0, 1]]: the step of gradient (8, 8) is −(1, 1)."""
    normal = Normal(sparse.csr_matrix(np.array([[1.0, 2.0], [2.0, 0.0], [0.0, 1.0]])), np.ones(2))
    assert normal.matrix.tolist() == [[6, 2], [2, 6]]
    assert normal.step(np.array([8.0, 8.0]), 0.0) == pytest.approx([-1.0, -1.0])
    # Damping lengthens the diagonal: (9 + 2)·x = 8.
    damped = normal.step(np.array([8.0, 8.0]), 0.5)
    assert damped == pytest.approx([-8 / 11, -8 / 11])


def test_unknowns_that_data_hardly_see_are_solved_alone() -> None:
    """The second is seen at 0.0001 against a prior of 1: −g/(0.0001 + 1)."""
    normal = Normal(sparse.csr_matrix(np.array([[1.0, 0.01]])), np.ones(2))
    assert normal.coupled.tolist() == [0]
    assert normal.step(np.array([2.0, 1.0]), 0.0) == pytest.approx([-1.0, -1 / 1.0001])


def fitted(given: Priors, times: list[tuple[str, Features]], measured: list[float]) -> list[float]:
    problem = design_of(given, times).close(len(times))
    theta = fit(problem, np.array(measured), np.ones(len(times)))
    return problem.predict(theta).tolist()


def test_many_rows_are_followed_and_few_are_shrunk() -> None:
    """All take 1.2 times what the prior says; the more say so, the nearer the fit comes."""
    asked, told = ("a1", features(memory=1e-3)), 2.4e-3
    errors = []
    for count in (1, 5, 50):
        predicted = fitted(priors(), [asked] * count, [told] * count)
        assert len(set(np.round(predicted, 12))) == 1
        errors.append(abs(math.log(predicted[0] / told)))
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.005
    assert predicted[0] < told


def test_one_row_is_shrunk_by_the_ratio_of_variances() -> None:
    """One row of σ = 0.15 against unknowns of 0.3 and 0.2 in all: log(1.1) moves by
    (0.09 + 0.04)/(0.09 + 0.04 + 0.0225) = 0.852 of itself, as the knee hardly bends it.
    """
    predicted = fitted(priors(), [("a1", features(memory=1e-3))], [2.2e-3])
    moved = math.log(predicted[0] / 2e-3) / math.log(1.1)
    assert moved == pytest.approx(0.13 / 0.1525, abs=0.02)


def test_levels_tell_accelerators_apart() -> None:
    """Many rows of two accelerators, of which one is twice as fast: each is followed."""
    levels = [[["kind", "gpu"], 0.5]]
    rows = [("a1", features(memory=1e-3))] * 30 + [("b1", features(memory=1e-3))] * 30
    predicted = fitted(priors(memory={"levels": levels}), rows, [1.6e-3] * 30 + [3.2e-3] * 30)
    assert predicted[0] == pytest.approx(1.6e-3, rel=0.02)
    assert predicted[-1] == pytest.approx(3.2e-3, rel=0.02)


def test_shares_never_pass_the_datasheet() -> None:
    """Rows that claim half the datasheet's time are not followed below it by a share."""
    given = priors(scale={"values": {}})
    predicted = fitted(given, [("a1", features(memory=1e-3))] * 50, [0.5e-3] * 50)
    assert predicted[0] == pytest.approx(1e-3, rel=1e-6)


def row(**inputs: str) -> Row:
    return Row("serving", {"model": "m", "gpu": "g", **inputs}, {}, {})


@pytest.mark.parametrize(
    ("sizes", "most", "weights"),
    [
        ({"a": 1, "b": 1}, 4, [1.0, 1.0]),
        # Eight rows of a set count as four.
        ({"a": 8, "b": 2}, 4, [0.5] * 8 + [1.0] * 2),
        ({"a": 10}, 1, [0.1] * 10),
    ],
)
def test_a_set_counts_as_so_many_rows(
    sizes: dict[str, int], most: int, weights: list[float]
) -> None:
    rows = [row(model=name) for name, count in sizes.items() for _ in range(count)]
    assert set_weights(rows, ("model", "gpu"), most).tolist() == pytest.approx(weights)
    assert set_weights(rows, ("gpu",), len(rows)).tolist() == [1.0] * len(rows)
