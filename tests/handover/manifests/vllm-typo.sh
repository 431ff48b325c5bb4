# expect: {"verdict": "fail", "codes": ["argument_repeated", "argument_unknown", "argument_value", "default_moved"], "fields": {"max_sequences": 64}, "question": {"gpu": "h100-sxm5"}}
vllm serve meta-llama/Llama-3.1-8B-Instruct --max-num-seq 64 --max-num-seqs 32 --max-num-seqs 64 \
  --gpu-memory-utilisation 0.9 --block-size large
