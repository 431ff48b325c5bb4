# expect: {"verdict": "fail", "codes": ["default_moved", "flags_refused"], "question": {"gpu": "h100-sxm5"}}
python -m sglang.launch_server --model-path meta-llama/Llama-3.1-8B-Instruct --disable-radix-cache --enable-hierarchical-cache
