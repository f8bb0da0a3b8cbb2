/// \file
/// What PyTorch's profiler (Kineto) recorded of one rank: what ran on the GPU, by which operator's
/// launch, with the shapes of that operator where they were recorded.
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
/// A kernel belongs to the launch with its `correlation`; a launch to the innermost operator or
/// range of its thread that holds it. (`External id` names the operator in some versions and
/// repeats the correlation in others.) Events are read one by one, so that a trace takes little
/// more memory than its text. Keys that say nothing about these are not read: the format is its
/// writers' own and grows with each of their versions.
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

namespace foreshard::profile {

/// What a thread of the host was inside of: an operator, or a range that somebody named.
struct HostRange {
  std::string name;
  std::int64_t thread = 0;
  Seconds start;  ///< Since the first event of the trace.
  Seconds lasted;
  /// Of the operator's inputs; empty where shapes were not recorded.
  std::vector<std::vector<std::int64_t>> shapes;
  std::vector<std::string> types;  ///< "c10::BFloat16"; as many as shapes, or none.
  std::int32_t parent = -1;        ///< The range around it, if any.
};

/// What a collective of NCCL was asked for.
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
  Seconds launched;  ///< By the host; `start` where the trace does not tell.
  std::int64_t stream = 0;
  std::int32_t range = -1;  ///< The innermost one around its launch; negative if there is none.
  bool copy = false;        ///< A copy or a fill, by the driver.
  std::optional<TracedCollective> collective;
};

/// A call that launched something, or that waited for the GPU.
struct HostCall {
  std::int64_t thread = 0;
  Seconds start;
  Seconds lasted;
  bool waits = false;
};

struct Trace {
  std::string device;  ///< "NVIDIA H800"; empty if it does not say.
  std::int64_t rank = 0;
  std::int64_t ranks = 1;
  std::vector<HostRange> ranges;      ///< By thread, then start, the outer one first.
  std::vector<TracedKernel> kernels;  ///< By start.
  std::vector<HostCall> calls;        ///< By start.
  std::int64_t earlier = 0;           ///< Kernels left out: launched before the recording began.

  Seconds gpu_time() const;  ///< Sum over `kernels`.
};

/// Whether `text` looks like a trace, by its first bytes.
bool is_trace(std::string_view text);

/// \param name  of the file, for messages.
/// \return kInvalidInput with "name:" and the place ("traceEvents[3].dur:") where the text is no
///     JSON, or an event that counts lacks a time or has one that is no number; kInvalidInput for a
///     trace without GPU events.
Result<Trace> read_trace(std::string_view text, std::string_view name);

}  // namespace foreshard::profile
