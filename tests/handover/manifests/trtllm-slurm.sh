# expect: {"verdict": "pass", "codes": [], "fields": {"tp": 16, "ep": 4, "nodes": 2, "max_sequences": 161}, "question": {"gpu": "h200-sxm"}}
srun -N 2 --ntasks 16 --ntasks-per-node=8 --mpi=pmix --gres=gpu:8 --container-image=trtllm \
  bash -c "trtllm-llmapi-launch trtllm-serve deepseek-ai/DeepSeek-V3 --max_batch_size 161 --max_seq_len 8192 --tp_size 16 --ep_size 4"
