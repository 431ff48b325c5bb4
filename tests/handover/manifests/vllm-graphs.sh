# expect: {"verdict": "pass", "codes": ["beyond_graphs", "default_moved"], "question": {"gpu": "h100-sxm5", "concurrency": 64, "isl": 500, "osl": 500}}
vllm serve meta-llama/Llama-3.1-8B-Instruct --max-cudagraph-capture-size 32
