# expect: {"verdict": "fail", "codes": ["default_moved", "device_refused"], "question": {"gpu": "groq-lpu-v1"}}
vllm serve meta-llama/Llama-3.1-8B-Instruct
