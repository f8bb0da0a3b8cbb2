/// \file
/// Reads what PyTorch's profiler (Kineto) recorded on one rank: the kernels on the GPU, the
/// operator that launched each of them, and the operator's shapes where they were recorded.
///
///     {"deviceProperties": [{"name": "NVIDIA H800"}],
///      "distributedInfo": {"rank": 0, "world_size": 64},
///      "traceEvents": [
///        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "tid": 7, "ts": 10, "dur": 30,
///         "args": {"Input Dims": [[4096, 7168], [7168, 1536]]}},
///        {"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "tid": 7, "ts": 20,
///         "dur": 5, "args": {"correlation": 9}},
///        {"ph": "X", "cat": "kernel", "name": "nvjet_hsh_128x256", "ts": 40, "dur": 101,
///         "args": {"stream": 7, "correlation": 9}}]}
///
/// A kernel belongs to the launch with the same `correlation`, and a launch to the innermost
/// operator or range of its thread that encloses it. (`External id` names the operator in some
/// versions and repeats the correlation in others.) Events are read one by one, so that a trace
/// takes little more memory than its text. Unknown keys are ignored, because the format is not
/// standardised and grows with each version.
///
/// Source: pytorch/kineto, libkineto/src/output_json.cpp (handleActivity, handleGenericActivity,
/// logMetadata); pytorch/pytorch, torch/csrc/profiler/collection.cpp ("Input Dims").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/units.h"

#include "strategies/program/ir/program.h"

namespace foreshard::profile {

/// An interval of a host thread: an operator, or a range named by the user.
struct HostRange {
  std::string name;
  std::int64_t thread = 0;
  Seconds start;  ///< Time since the first event of the trace.
  Seconds lasted;
  /// Shapes of the operator's inputs; empty if shapes were not recorded.
  std::vector<std::vector<std::int64_t>> shapes;
  std::vector<std::string> types;  ///< "c10::BFloat16"; one per shape, or none at all.
  std::int32_t parent = -1;        ///< Index of the enclosing range; -1: none.
};

/// Arguments of an NCCL collective.
struct TracedCollective {
  std::string name;  ///< "allreduce", "_allgather_base".
  std::int64_t elements_in = 0;
  std::int64_t elements_out = 0;
  std::int64_t ranks = 0;
  std::string dtype;  ///< "BFloat16".
};

/// A kernel, copy or fill on the GPU.
struct TracedKernel {
  std::string name;
  Seconds start;
  Seconds lasted;
  Seconds launched;  ///< When the host launched it; `start` if the trace does not tell.
  std::int64_t stream = 0;
  std::int32_t range = -1;  ///< Index of the innermost range around its launch; negative: none.
  bool copy = false;        ///< Whether it is a copy or a fill by the driver.
  std::optional<TracedCollective> collective;
};

/// A host call that launched something or waited for the GPU.
struct HostCall {
  std::int64_t thread = 0;
  Seconds start;
  Seconds lasted;
  bool waits = false;
};

struct Trace {
  std::string device;  ///< "NVIDIA H800"; empty if the trace does not say.
  std::int64_t rank = 0;
  std::int64_t ranks = 1;
  std::vector<HostRange> ranges;      ///< Ordered by thread, then start; outer ranges first.
  std::vector<TracedKernel> kernels;  ///< Ordered by start.
  std::vector<HostCall> calls;        ///< Ordered by start.
  std::int64_t earlier = 0;           ///< Kernels left out: launched before the recording began.

  Seconds gpu_time() const;  ///< Sum over `kernels`.
};

/// \param name  the file's name, for messages.
/// \return kInvalidInput with "name:" and the place ("traceEvents[3].dur:") if the text is not
///     JSON, or if a relevant event lacks a time or has one that is not a number; kInvalidInput for
///     a trace without GPU events.
Result<Trace> read_trace(std::string_view text, std::string_view name);

/// The extents of a batched product D[b] = A[b] B[b].
struct ProductShape {
  std::int64_t batch = 1;
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  auto operator<=>(const ProductShape&) const = default;
};

/// Shape of the product that launched the kernel: the innermost of mm, addmm, bmm, baddbmm,
/// _scaled_mm, matmul and linear around its launch. Nothing if shapes were not recorded.
/// Source: pytorch/pytorch, aten/src/ATen/native/native_functions.yaml (their arguments).
std::optional<ProductShape> product_shape(const Trace& trace, const TracedKernel& kernel);

/// Bytes of the collective as Programs count them (program::Communication::bytes); nothing if its
/// size or type was not recorded.
/// Source: pytorch/pytorch, torch/csrc/distributed/c10d/ParamCommsUtils.hpp (numbers of elements in
/// and out, of one rank).
std::optional<Bytes> collective_bytes(const TracedCollective& collective,
                                      program::CollectiveKind kind);

/// The kinds of communication that the collective's name can mean; empty if the name is unknown.
std::vector<program::CollectiveKind> collective_kinds(const TracedCollective& collective);

}  // namespace foreshard::profile
