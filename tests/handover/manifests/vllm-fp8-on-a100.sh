# expect: {"verdict": "pass", "codes": ["default_moved", "format_emulated"], "fields": {"weights": "fp8"}, "question": {"gpu": "a100-sxm4-80gb"}}
vllm serve meta-llama/Llama-3.1-8B-Instruct --quantization fp8
