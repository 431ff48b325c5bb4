"""Importers take what anybody sends: an answer or one line of refusal, soon and in little memory.

Every file is a good one with something broken in it: keys taken away, values of other types, of
other sizes, bytes flipped, ends cut off. A plain ValueError, TypeError or KeyError is a defect.
"""

from __future__ import annotations

import json
import os
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from planner.benchmarks import Context, read_text
from planner.errors import InvalidInput, one_line
from planner.handover.sources import read_files
from planner.hw import get_accelerator
from planner.models import get_model
from planner.models.gguf import import_gguf
from tests.models.test_gguf import LLAMA_KEYS, llama_tensors, write

SECONDS, BYTES = 1.0, 200_000_000
"""What one file may take; RELIABILITY asks for a refusal within it [s], [byte]."""
CONFIG = {
    "model_type": "mixtral",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "num_local_experts": 8,
    "num_experts_per_tok": 2,
    "vocab_size": 32000,
    "max_position_embeddings": 32768,
    "torch_dtype": "bfloat16",
}
CARD = {
    "id": "card",
    "peaks_flops_per_s": {"bf16": 1e15, "fp8": 2e15},
    "bandwidth_bytes_per_s": 3.3e12,
    "memory_bytes": 8.5e10,
    "source": "a datasheet",
    "link": {"name": "link", "bytes_per_s": 4.5e11},
    "domain_size": 8,
}
RESULTS = {
    "backend": "vllm",
    "model_id": "meta-llama/Llama-3.1-8B-Instruct",
    "num_prompts": 320,
    "max_concurrency": 32,
    "request_rate": "inf",
    "completed": 320,
    "duration": 63.25,
    "total_input_tokens": 327680,
    "total_output_tokens": 163840,
    "mean_ttft_ms": 182.4,
    "mean_tpot_ms": 11.86,
}
TABLE = (
    "model,gpu,tp,batch,context,tpot_ms\nmeta-llama/Llama-3.1-8B-Instruct,h100-sxm5,1,8,1024,8.5\n"
)
MANIFEST = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: llm}
spec:
  replicas: 2
  template:
    spec:
      containers:
        - name: vllm
          image: vllm/vllm-openai:v0.11.0
          args: [--model, meta-llama/Llama-3.1-8B-Instruct, --tensor-parallel-size, "2"]
          resources: {limits: {nvidia.com/gpu: 2}}
      nodeSelector: {nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3}
"""

odd = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**30), 10**30),
    st.floats(allow_nan=True, allow_infinity=True),
    st.sampled_from(["", "auto", "x" * 10_000, "\0", "-1", "1e999", "é", "../../etc/passwd"]),
    st.lists(st.integers(-1, 3), max_size=3),
    st.dictionaries(st.sampled_from(["a", "type", "factor"]), st.integers(), max_size=2),
)


@st.composite
def broken(draw: st.DrawFn, good: dict[str, Any]) -> dict[str, Any]:
    """A good object with up to three keys taken away, changed or added."""
    changed = dict(good)
    for _ in range(draw(st.integers(1, 3))):
        key = draw(st.sampled_from([*good, "unknown_key"]))
        if draw(st.booleans()):
            changed.pop(key, None)
        else:
            changed[key] = draw(odd)
    return changed


@st.composite
def cut(draw: st.DrawFn, good: str) -> str:
    """A good text with its end cut off, and characters changed."""
    text = list(good[: draw(st.integers(0, len(good)))])
    for _ in range(draw(st.integers(0, 4))):
        if text:
            place = draw(st.integers(0, len(text) - 1))
            text[place] = draw(st.sampled_from([*"{}[]:,\"'\n\t -0$&*!|>\0", "é", "99999999999"]))
    return "".join(text)


def answered_or_refused(read: Callable[[], object]) -> str:
    """Read; return the one line of a refusal, empty where it was read."""
    began = time.perf_counter()
    tracemalloc.start()
    try:
        read()
        message = ""
    except (InvalidInput, ValidationError) as error:
        message = one_line(error)
        assert message
        assert "\n" not in message
    finally:
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert most < BYTES
    # Tracing makes it several times slower, and the machine may be busy.
    assert time.perf_counter() - began < 20 * SECONDS
    return message


EXAMPLES = int(os.environ.get("PLANNER_TEST_EXAMPLES", "12"))
"""Files of each kind; tools/reliability.py asks for more."""
FEW = settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.mark.reliability
@FEW
@given(config=broken(CONFIG))
def test_configs(config: dict[str, Any]) -> None:
    answered_or_refused(lambda: get_model(config, local=False))


@pytest.mark.reliability
@FEW
@given(spec=broken(CARD))
def test_accelerators(spec: dict[str, Any]) -> None:
    answered_or_refused(lambda: get_accelerator(spec, allow_files=False))


@pytest.mark.reliability
@FEW
@given(results=broken(RESULTS), text=cut(json.dumps(RESULTS)), whole=st.booleans())
def test_results_of_benchmarks(results: dict[str, Any], text: str, whole: bool) -> None:
    context = Context(gpu="h100-sxm5", tp=1)
    sent = json.dumps(results) if whole else text
    answered_or_refused(lambda: read_text(sent, context, local=False))


@pytest.mark.reliability
@FEW
@given(text=cut(TABLE))
def test_tables(text: str) -> None:
    answered_or_refused(lambda: read_text(text, local=False))


@pytest.mark.reliability
@FEW
@given(text=cut(MANIFEST))
def test_manifests(text: str) -> None:
    answered_or_refused(lambda: read_files({"deployment.yaml": text}))


@pytest.fixture(scope="module")
def gguf(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("gguf") / "m.gguf"
    return Path(write(path, "llama", LLAMA_KEYS, llama_tensors())).read_bytes()


@pytest.mark.reliability
@FEW
@given(data=st.data())
def test_gguf_headers(
    gguf: bytes, tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    head = bytearray(gguf[: data.draw(st.integers(0, len(gguf)))])
    for _ in range(data.draw(st.integers(1, 8))):
        if head:
            head[data.draw(st.integers(0, min(len(head), 4096) - 1))] = data.draw(
                st.integers(0, 255)
            )
    path = tmp_path_factory.getbasetemp() / "fuzzed.gguf"
    path.write_bytes(head)
    answered_or_refused(lambda: import_gguf(path))


@pytest.mark.parametrize(
    ("read", "line"),
    [
        (lambda: get_model({**CONFIG, "hidden_size": -1}), "hidden_size"),
        (lambda: get_accelerator({**CARD, "memory_bytes": 1e30}), "memory_bytes"),
        (lambda: read_text("{", Context(gpu="h100-sxm5")), "accepted"),
        (lambda: read_files({"a.yaml": "kind: Deployment\0"}), "a.yaml: not text"),
    ],
)
def test_a_refusal_names_what_is_wrong(read: Callable[[], object], line: str) -> None:
    assert line in answered_or_refused(read)
