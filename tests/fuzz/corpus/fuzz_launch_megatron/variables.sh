#!/bin/bash
TP=${TP:-2}
SEQ=4096
GBS=$((16 * (TP + 2)))
GPT_ARGS="
  --num-layers 32 --hidden-size 4096 --num-attention-heads 32
  --seq-length $SEQ --max-position-embeddings ${SEQ} --window-size 1023,0
"
ARGS=(
  --micro-batch-size 1 --global-batch-size ${GBS} --tensor-model-parallel-size "$TP" --bf16
)
torchrun --nproc-per-node 8 --nnodes ${NODES:-1} pretrain_gpt.py $GPT_ARGS ${ARGS[@]}
