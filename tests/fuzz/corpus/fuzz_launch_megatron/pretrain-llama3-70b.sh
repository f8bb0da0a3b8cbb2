#!/bin/bash
#SBATCH --nodes=8 --ntasks-per-node=8
# Llama 3 70B on 64 GPUs.
export CUDA_DEVICE_MAX_CONNECTIONS=1
CHECKPOINTS=/data/checkpoints

DISTRIBUTED_ARGS=(
    --nproc_per_node 8
    --nnodes $SLURM_NNODES
    --master_addr $MASTER_ADDR
)
MODEL_ARGS=(
    --num-layers 80
    --hidden-size 8192
    --ffn-hidden-size 28672
    --num-attention-heads 64
    --group-query-attention
    --num-query-groups 8
    --seq-length 8192
    --max-position-embeddings 8192
    --vocab-size 128256
    --normalization RMSNorm
    --swiglu
    --position-embedding-type rope
    --rotary-base 500000
    --untie-embeddings-and-output-weights
    --disable-bias-linear
    --attention-dropout 0.0 --hidden-dropout 0.0
)
PARALLEL_ARGS=(
    --tensor-model-parallel-size 4
    --pipeline-model-parallel-size 4
    --num-layers-per-virtual-pipeline-stage 4
    --context-parallel-size 2
    --sequence-parallel
    --use-distributed-optimizer
    --overlap-grad-reduce
    --overlap-param-gather
    --tp-comm-overlap
)
TRAINING_ARGS=(
    --micro-batch-size 1
    --global-batch-size 128
    --bf16
    --lr 1.5e-4
    --train-iters 500000
    --recompute-activations
    --fp8-format hybrid --fp8-recipe tensorwise
    --cross-entropy-loss-fusion
)
OUTPUT_ARGS=(
    --log-interval 10
    --save $CHECKPOINTS
    --tensorboard-dir "$CHECKPOINTS/tb logs"
)
torchrun ${DISTRIBUTED_ARGS[@]} pretrain_gpt.py ${MODEL_ARGS[@]} ${PARALLEL_ARGS[@]} \
    ${TRAINING_ARGS[@]} ${OUTPUT_ARGS[@]}
