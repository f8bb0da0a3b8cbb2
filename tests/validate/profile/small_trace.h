/// \file
/// A trace of four kernels, as PyTorch's profiler writes it, with what launched them: a product of
/// recorded shape, a norm of two kernels, an all-reduce, and the product of a backward pass.
#pragma once

#include <string>

namespace foreshard::profile {

inline const std::string kSmallTrace = R"({
  "schemaVersion": 1,
  "deviceProperties": [{"id": 0, "name": "NVIDIA H100 80GB HBM3"}],
  "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 2},
  "traceEvents": [
    {"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "python"}},
    {"ph": "X", "cat": "cpu_op", "name": "aten::linear", "pid": 1, "tid": 1, "ts": 1000, "dur": 40,
     "args": {"Input Dims": [[2, 64, 256], [512, 256], []], "Input type": ["c10::BFloat16", "c10::BFloat16", ""]}},
    {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1005, "dur": 30,
     "args": {"Input Dims": [[128, 256], [256, 512]], "Input type": ["c10::BFloat16", "c10::BFloat16"]}},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 1010, "dur": 4,
     "args": {"correlation": 1}},
    {"ph": "X", "cat": "kernel", "name": "nvjet_tst_128x64", "pid": 0, "tid": 7, "ts": 1020, "dur": 10,
     "args": {"stream": 7, "correlation": 1}},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 1050, "dur": 4,
     "args": {"correlation": 2}},
    {"ph": "X", "cat": "kernel", "name": "void at::native::vectorized_elementwise_kernel<pow>", "pid": 0, "tid": 7,
     "ts": 1060, "dur": 2, "args": {"stream": 7, "correlation": 2}},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 1, "ts": 1070, "dur": 4,
     "args": {"correlation": 3}},
    {"ph": "X", "cat": "kernel", "name": "void at::native::reduce_kernel<mean>", "pid": 0, "tid": 7,
     "ts": 1080, "dur": 3, "args": {"stream": 7, "correlation": 3}},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernelExC", "pid": 1, "tid": 1, "ts": 1090, "dur": 4,
     "args": {"correlation": 4}},
    {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "pid": 0, "tid": 20,
     "ts": 1100, "dur": 20, "args": {"stream": 20, "correlation": 4, "Collective name": "allreduce",
     "In msg nelems": 65536, "Out msg nelems": 65536, "Group size": 2, "dtype": "BFloat16"}},
    {"ph": "X", "cat": "cpu_op", "name": "autograd::engine::evaluate_function: MmBackward0", "pid": 1, "tid": 2,
     "ts": 1200, "dur": 50, "args": {"Sequence number": 1}},
    {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1, "tid": 2, "ts": 1210, "dur": 4,
     "args": {"correlation": 5}},
    {"ph": "X", "cat": "kernel", "name": "sm90_xmma_gemm_bf16bf16_bf16f32_f32_nt", "pid": 0, "tid": 7,
     "ts": 1220, "dur": 12, "args": {"stream": 7, "correlation": 5}},
    {"ph": "X", "cat": "kernel", "name": "somebodys_kernel", "pid": 0, "tid": 7, "ts": 1240, "dur": 3,
     "args": {"stream": 7, "correlation": 6}}
  ]
})";

}  // namespace foreshard::profile
