# expect: {"verdict": "pass", "codes": ["model_assumed"], "fields": {"weights": "q8_0", "pp": 2}, "question": {"gpu": "rtx-4090"}}
llama-server -m /srv/models/Qwen2.5-7B-Instruct-Q8_0.gguf -ts 1,1 -c 16384
