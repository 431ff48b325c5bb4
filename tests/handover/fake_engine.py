"""A small server that exports the metrics an engine would, under the documented names."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BUCKETS = (0.001, 0.005, 0.01, 0.02, 0.03, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
NAMES: Mapping[str, Mapping[str, str]] = {
    "vllm": {
        "running": "vllm:num_requests_running",
        "waiting": "vllm:num_requests_waiting",
        "requests": "vllm:request_success_total",
        "prompt_tokens": "vllm:prompt_tokens_total",
        "output_tokens": "vllm:generation_tokens_total",
        "ttft_s": "vllm:time_to_first_token_seconds",
        "tpot_s": "vllm:request_time_per_output_token_seconds",
        "hits": "vllm:prefix_cache_hits_total",
        "queries": "vllm:prefix_cache_queries_total",
    },
    "sglang": {
        "running": "sglang:num_running_reqs",
        "waiting": "sglang:num_queue_reqs",
        "requests": "sglang:num_requests_total",
        "prompt_tokens": "sglang:prompt_tokens_total",
        "output_tokens": "sglang:generation_tokens_total",
        "ttft_s": "sglang:time_to_first_token_seconds",
        "tpot_s": "sglang:request_time_per_output_token_seconds",
    },
    "trtllm": {
        "running": "trtllm_num_requests_running",
        "waiting": "trtllm_num_requests_waiting",
        "requests": "trtllm_request_success_total",
        "prompt_tokens": "trtllm_prompt_tokens_total",
        "output_tokens": "trtllm_generation_tokens_total",
        "ttft_s": "trtllm_time_to_first_token_seconds",
        "tpot_s": "trtllm_time_per_output_token_seconds",
    },
    "llama.cpp": {
        "running": "llamacpp:requests_processing",
        "waiting": "llamacpp:requests_deferred",
        "prompt_tokens": "llamacpp:prompt_tokens_total",
        "output_tokens": "llamacpp:tokens_predicted_total",
        "output_seconds": "llamacpp:tokens_predicted_seconds_total",
    },
}


@dataclass(frozen=True)
class Engine:
    """What the engine did since it started."""

    engine: str
    requests: int
    isl: int
    osl: int
    ttft_s: float
    tpot_s: float
    running: int
    hit: float = 0.0
    pool_blocks: int | None = None
    memory_fraction: float = 0.92

    def text(self) -> str:
        """The metrics as Prometheus text."""
        label = 'model_name="served",engine="0"'
        names, lines = NAMES[self.engine], ["# HELP x y", "# TYPE x counter"]
        values = {
            "running": self.running,
            "waiting": 0,
            "requests": self.requests,
            "prompt_tokens": self.requests * self.isl,
            "output_tokens": self.requests * self.osl,
            "output_seconds": self.requests * self.osl * self.tpot_s,
            "queries": self.requests * self.isl,
            "hits": self.requests * self.isl * self.hit,
        }
        lines += [f"{names[k]}{{{label}}} {v}" for k, v in values.items() if k in names]
        for key, time_s in (("ttft_s", self.ttft_s), ("tpot_s", self.tpot_s)):
            if key in names:
                lines += _histogram(names[key], label, time_s, self.requests)
        if self.engine == "vllm" and self.pool_blocks:
            config = (
                f'num_gpu_blocks="{self.pool_blocks}",block_size="16",'
                f'gpu_memory_utilization="{self.memory_fraction}"'
            )
            lines.append(f"vllm:cache_config_info{{{config}}} 1.0")
        if self.engine == "trtllm" and self.pool_blocks:
            lines.append(f"trtllm_kv_cache_max_blocks{{{label}}} {self.pool_blocks}")
            lines.append(f"trtllm_kv_cache_tokens_per_block{{{label}}} 32")
        if self.engine == "sglang" and self.pool_blocks:
            lines.append(f"sglang:max_total_num_tokens{{{label}}} {self.pool_blocks}")
        return "\n".join(lines) + "\n"


def _histogram(name: str, label: str, value: float, count: int) -> Sequence[str]:
    lines = [
        f'{name}_bucket{{{label},le="{high}"}} {count if value <= high else 0}' for high in BUCKETS
    ]
    lines.append(f'{name}_bucket{{{label},le="+Inf"}} {count}')
    return [*lines, f"{name}_sum{{{label}}} {value * count}", f"{name}_count{{{label}}} {count}"]


@contextmanager
def running(engine: Engine) -> Iterator[str]:
    """The address of a server of these metrics."""
    body = engine.text().encode()
    path = "/prometheus/metrics" if engine.engine == "trtllm" else "/metrics"

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            answers = {path: body}
            if path != "/metrics":
                answers["/metrics"] = b"[]"  # trtllm-serve: its iterations as JSON
            self.send_response(200 if self.path in answers else 404)
            self.end_headers()
            self.wfile.write(answers.get(self.path, b""))

        def log_message(self, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
