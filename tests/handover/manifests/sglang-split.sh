# expect: {"verdict": "fail", "codes": ["default_moved", "split_refused"], "question": {"gpu": "h200-sxm"}}
sglang serve --model-path deepseek-ai/DeepSeek-V3 --tp-size 8 --ep-size 3
