# expect: {"verdict": "pass", "codes": ["prefix_caching_off"], "fields": {"kv": "int8"}, "question": {"gpu": "a100-sxm4-80gb", "concurrency": 4, "isl": 1000, "osl": 100, "prefix_hit": 0.5}}
lmdeploy serve api_server Qwen/Qwen2.5-7B-Instruct --tp 2 --quant-policy 8 --session-len 16384
