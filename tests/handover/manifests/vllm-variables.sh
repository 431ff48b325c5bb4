# expect: {"verdict": "pass", "codes": ["argument_open", "default_moved"], "fields": {"tp": 2, "max_model_len": 16384}, "question": {"gpu": "h100-sxm5"}}
TP=2
export LEN=16384
exec vllm serve meta-llama/Llama-3.1-8B-Instruct \
  --tensor-parallel-size "$TP" --max-model-len ${LEN} \
  --max-num-seqs $SEQS
