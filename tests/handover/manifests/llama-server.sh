# expect: {"verdict": "pass", "codes": ["model_assumed"], "fields": {"weights": "q4_k_m", "max_sequences": 4}, "question": {"gpu": "rtx-4090"}}
llama-server -hf bartowski/Qwen2.5-7B-Instruct-GGUF:Q4_K_M -c 32768 -np 4 -ngl 99 -fa on
