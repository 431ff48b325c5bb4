"""Engines only where they run, at versions that are versions; what is extrapolated is said."""

from __future__ import annotations

import pytest

from planner import Scenario, plan
from planner.engines.profiles import engines
from planner.engines.support import UnknownVersion, UnsupportedDevice
from planner.hw import list_accelerators
from planner.plans.planning import plan as answer
from planner.plans.recommend import RecommendationRequest, recommend

ONE = {"model": "meta-llama/Llama-3.1-8B-Instruct", "batch": [1], "context": [1024]}
OWN = {
    "bandwidth_bytes_per_s": 1e12,
    "memory_bytes": 96e9,
    "source": "a test",
    "peaks_flops_per_s": {"bf16": 1e14},
}


def notes(**asked: object) -> dict[str, str]:
    return {note.code: note.text for note in plan(Scenario(**ONE | asked)).notes}


@pytest.mark.parametrize(
    ("engine", "gpu", "there"),
    [
        ("trtllm", "mi300x", "vllm, sglang, llama.cpp, no engine"),
        ("trtllm", "m3-max", "vllm, sglang, llama.cpp, no engine"),
        ("trtllm", "tpu-v5e", "vllm, sglang, no engine"),
        ("trtllm", "v100-sxm2-32gb", "vllm, sglang, llama.cpp, lmdeploy, no engine"),
        ("trtllm", {**OWN, "vendor": "AMD"}, "vllm, sglang, llama.cpp, no engine"),
        ("llama.cpp", "tpu-v5e", "vllm, sglang, no engine"),
        ("llama.cpp", "gaudi3", "vllm, sglang, no engine"),
        ("vllm", "p40", "llama.cpp, no engine"),
        ("vllm", "groq-lpu-v1", "accepted there: no engine"),
        ("sglang", "trainium2", "accepted there: vllm, no engine"),
    ],
)
def test_an_engine_that_does_not_run_there_is_refused(engine: str, gpu: str, there: str) -> None:
    with pytest.raises(UnsupportedDevice, match=r"^engine: ") as caught:
        plan(Scenario(**ONE, gpu=gpu, engine=engine))
    assert str(caught.value).endswith(there)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("engine", "gpu", "backend"),
    [
        ("vllm", "tpu-v5e", "tpu-inference"),
        ("vllm", "mi300x", "ROCm"),
        ("vllm", "m3-max", "vllm-metal"),
        ("sglang", "m3-max", "MLX"),
        ("sglang", "tpu-v5e", "SGLang-JAX"),
        ("llama.cpp", "m3-max", "Metal"),
        ("vllm", "h100-sxm5", None),
        ("sglang", "dgx-spark-gb10", None),
        ("trtllm", "dgx-spark-gb10", None),
        (None, "groq-lpu-v1", None),
    ],
)
def test_another_backend_than_the_profiles_is_said(
    engine: str | None, gpu: str, backend: str | None
) -> None:
    found = notes(engine=engine, gpu=gpu).get("engine_backend")
    assert (found is None) == (backend is None)
    assert backend is None or backend in str(found)


def test_of_a_vendor_nobody_knows_it_is_not_known() -> None:
    assert "engine_device_unknown" in notes(engine="trtllm", gpu=OWN)
    assert "engine_device_unknown" not in notes(gpu=OWN)


def test_every_backend_is_of_a_kind_of_device_in_the_catalogue() -> None:
    devices = {f"{acc.vendor} {acc.kind}" for acc in list_accelerators()}
    architectures = {acc.architecture for acc in list_accelerators()}
    for engine in engines().values():
        assert set(engine.backends) <= devices
        assert set(engine.not_on) <= architectures
        assert not engine.backends or engine.profiled_with in engine.backends.values()


@pytest.mark.parametrize(
    ("engine", "version", "accepted"),
    [
        ("vllm", "banana", "a release (0.17.0) or the date of a build"),
        ("vllm", "b6118", "a release (0.17.0)"),
        ("vllm", "nightly", "the date of a build"),
        ("trtllm", "1", "a release"),
        ("llama.cpp", "0.17.0", "the number of a build (b6118)"),
        ("sglang", "2026-13", "the date of a build"),
        (None, "0.17.0", "with engine"),
    ],
)
def test_a_version_that_is_none_is_refused(engine: str | None, version: str, accepted: str) -> None:
    with pytest.raises(UnknownVersion, match=r"^engine_version: ") as caught:
        answer(Scenario(**ONE, gpu="h100-sxm5", engine=engine, engine_version=version))
    assert accepted in str(caught.value)
    with pytest.raises(UnknownVersion):
        recommend(RecommendationRequest(model=ONE["model"], engine=engine, engine_version=version))


@pytest.mark.parametrize(
    ("engine", "version", "code"),
    [  # defaults read: vLLM 0.11 to 0.33, SGLang 0.4 to 0.5.23; memory measured: vLLM 0.11 to 0.24,
        # SGLang 0.5 to 0.5.14
        ("vllm", "0.11.0", None),
        ("vllm", "v0.24.1", None),
        ("vllm", "0.25", "unmeasured"),
        ("vllm", "0.33", "unmeasured"),
        ("vllm", "0.34.0", "beyond"),
        ("vllm", "0.9.1", "beyond"),
        ("vllm", "nightly-20260402", None),
        ("vllm", "2024-01", "beyond"),
        ("trtllm", "1.3.0rc23", None),
        ("trtllm", "0.21.0", "beyond"),
        ("sglang", "0.5", None),
        ("sglang", "0.4.6", "unmeasured"),
        ("sglang", "0.5.14.post1", None),
        ("sglang", "0.5.15", "unmeasured"),
        ("sglang", "0.5.24", "beyond"),
        ("llama.cpp", "b6118", None),
        ("llama.cpp", "6118", None),
        ("llama.cpp", "b11312", "unmeasured"),
        ("llama.cpp", "b11413", "beyond"),
        ("lmdeploy", "0.18.0", None),
        ("vllm", None, None),
    ],
)
def test_a_version_that_was_not_read_or_measured_is_said(
    engine: str, version: str | None, code: str | None
) -> None:
    codes = {
        name.removeprefix("engine_version_")
        for name in notes(engine=engine, gpu="h100-sxm5", engine_version=version)
        if name.startswith("engine_version_")
    }
    assert codes == ({code} if code else set())


def test_a_version_beyond_those_read_names_the_release_that_is_taken() -> None:
    text = notes(engine="vllm", gpu="h100-sxm5", engine_version="0.34.0")["engine_version_beyond"]
    assert text == (
        "engine_version 0.34.0: defaults of vLLM were read from 0.11.0 to 0.33.0; those of 0.33.0 "
        "are taken: 0.02 more of memory_fraction, the largest change yet, is 2% of memory for the "
        "cache"
    )


@pytest.mark.parametrize(
    ("engine", "measured"),
    [("vllm", True), ("sglang", True), ("trtllm", True), ("llama.cpp", True), ("lmdeploy", False)],
)
def test_an_engine_of_which_no_run_is_on_record_says_so(engine: str, measured: bool) -> None:
    stated = notes(engine=engine, gpu="h100-sxm5")
    assert ("engine_unmeasured" not in stated) == measured
    assert ("datasheet only" not in stated["nearness"]) == measured
