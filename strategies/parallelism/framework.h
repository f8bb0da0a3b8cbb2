/// \file
/// What a training framework does with a strategy, as facts (configs/frameworks/*.yaml): what it
/// fuses, overlaps and synchronises. Numbers of time do not belong here: launch times are those of
/// the host (topology), shared by all frameworks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/units.h"
#include "base/yaml/table.h"

#include "strategies/program/ir/kernel.h"

namespace foreshard {

/// When gradients are reduced over the data-parallel ranks.
enum class GradientReduction : std::uint8_t {
  kAfterBackward,  ///< In one go after the last micro-batch.
  kOverlapped,     ///< Per layer, beside the backward pass of the last micro-batch.
};

enum class PipelineTransfers : std::uint8_t {
  kBlocking,    ///< A stage goes on when its sends and receives of the slot are done.
  kOverlapped,  ///< Sends proceed beside computation.
};

/// How sure a prediction is: of public measurements with the framework, the ratio of measured to
/// predicted time lies between these in 8 cases of 10 (10th and 90th percentile). Taken from the
/// rows of `foreshard accuracy --format json`; predictions themselves are not scaled by it.
struct Residual {
  double low = 1;
  double high = 1;
  std::int64_t measurements = 0;
  std::string source;
};

struct Framework {
  std::string name{};  ///< Empty: none was named.
  bool flash_attention = true;
  bool fused_gradient_accumulation = true;
  DType gradient_dtype = DType::kFp32;  ///< Of the accumulated gradient, and of its reduction.
  GradientReduction gradient_reduction = GradientReduction::kOverlapped;
  /// Overlapped gradients of a general graph are reduced when so many bytes are there (a
  /// transformer's by the layer).
  Bytes gradient_bucket = 25_MiB;
  bool overlap_parameter_gather = false;  ///< ZeRO-1/2: gather beside the next forward pass.
  bool overlap_tensor_gradients = true;   ///< Tensor-parallel reductions beside weight gradients.
  PipelineTransfers pipeline_transfers = PipelineTransfers::kBlocking;
  bool pipeline_host_sync = false;         ///< The host waits for every pipeline transfer.
  bool pipeline_scatter_gather = false;    ///< Replicated activations are sent in 1/tensor pieces.
  bool shard_prefetch = true;              ///< ZeRO-3: gather one layer ahead.
  bool gradient_clipping = true;           ///< A global gradient norm before the optimizer step.
  std::int64_t vocabulary_multiple = 128;  ///< Padded to this times the tensor-parallel size.
  std::optional<Residual> residual;
  std::string source;
};

const yaml::Names<GradientReduction>& yaml_names(const GradientReduction*);
const yaml::Names<PipelineTransfers>& yaml_names(const PipelineTransfers*);
const yaml::Names<DType>& yaml_names(const DType*);
const yaml::Table<Residual>& yaml_table(const Residual*);
const yaml::Table<Framework>& yaml_table(const Framework*);

}  // namespace foreshard
