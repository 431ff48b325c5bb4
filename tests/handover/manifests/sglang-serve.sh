# expect: {"verdict": "pass", "codes": ["default_moved"], "fields": {"tp": 4, "attention_dp": 2, "ep": 8}, "question": {"gpu": "h200-sxm"}}
sglang serve --model-path deepseek-ai/DeepSeek-V3 --tp-size 8 --attn-dp-size 2 --ep-size 8
