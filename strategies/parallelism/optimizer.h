/// \file
/// Optimizers: the states that each keeps per parameter, and the work of one step on a rank.
///
///     strategy:
///       optimizer: {first_moment: bf16, second_moment: bf16}   # Adam, as DeepSeek-V3
///       optimizer: {rule: muon}
///
/// A step is a list of kernels and exchanges, which both lowering and search read. The reduction of
/// gradients and the gather of updated parameters belong to the plan and do not depend on the
/// optimizer.
///
/// To add an optimizer, write a file in optimizers/ that defines an OptimizerRule, its declaration
/// in internal/optimizers.h and its line in optimizer.cc.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/yaml/table.h"

#include "strategies/graph/attribute.h"
#include "strategies/graph/graph.h"
#include "strategies/program/ir/kernel.h"

namespace foreshard {

enum class OptimizerKernels : std::uint8_t;

/// A strategy's choice of optimizer.
struct Optimizer {
  std::string rule = "adam";  ///< A name of optimizer_rules().
  DType first_moment = DType::kFp32;
  DType second_moment = DType::kFp32;
  /// Type of the copy of the parameters that is updated. If it is the parameters' own type there is
  /// no copy: they are updated in place.
  DType master = DType::kFp32;
  /// Only the 16 bits of an fp32 master copy that the bf16 parameters lack are kept.
  bool remainders = false;
  std::int64_t block = 256;  ///< Elements of a moment that share a scale (adam-8bit).
  bool operator==(const Optimizer&) const = default;
};
const yaml::Table<Optimizer>& yaml_table(const Optimizer*);

/// Whether a parameter is a weight of a layer: not an embedding, the head, a norm or a bias.
bool is_matrix_of_layer(const Tensor& parameter);

/// Weight matrices of layers with one shape, as one rank holds them. Every expert has a matrix of
/// its own.
struct MatrixGroup {
  std::int64_t rows = 0;      ///< Rows of the whole matrix.
  std::int64_t columns = 0;   ///< Columns of the whole matrix.
  std::int64_t count = 0;     ///< Matrices of which the rank holds a part.
  std::vector<Axis> split{};  ///< The axes over which every matrix is split.
  bool operator==(const MatrixGroup&) const = default;
};
/// Elements of the matrices that one rank holds.
std::int64_t elements_of(const MatrixGroup& matrices, const std::vector<MeshAxis>& mesh);
/// Adds `more` to the entry of the same shape and split, or appends it.
void add_matrices(std::vector<MatrixGroup>& to, const MatrixGroup& more);

/// Parameters that a rank updates.
struct UpdatedParameters {
  std::vector<Axis> cut{};    ///< The axes over which their optimizer states are sharded.
  std::int64_t elements = 0;  ///< Elements on one rank, before that sharding.
  std::int64_t tensors = 0;   ///< Counted, like `matrices`, only if the rule needs whole tensors.
  std::vector<MatrixGroup> matrices{};
};

/// A step of an optimizer on one rank.
struct Update {
  const Optimizer& optimizer;
  OptimizerKernels kernels;
  DType precision;
  const std::vector<MeshAxis>& mesh;
  std::vector<UpdatedParameters> updated{};

  /// Elements of the rank's shard of `count` elements that are sharded as `of`: the last shard is
  /// padded.
  std::int64_t share(std::int64_t count, const UpdatedParameters& of) const;
  /// Elements of the rank's shards in total; matrix_elements(): in matrices only.
  std::int64_t elements() const;
  std::int64_t matrix_elements() const;
};

struct UpdateKernel {
  std::string_view name;
  Kernel kernel;
  std::int64_t times = 1;
};
/// Exchange of a flat buffer over the axes: gathered from shards, or (`sums`) added up. A gathered
/// buffer keeps its memory until the next exchange.
struct UpdateExchange {
  std::string_view name;
  bool sums = false;
  std::int64_t elements = 0;  ///< Elements of the whole buffer.
  DType dtype = DType::kFp32;
  std::vector<Axis> axes{};
  std::int64_t times = 1;
};
using UpdateStep = std::variant<UpdateKernel, UpdateExchange>;

/// A state beside the master copy.
struct Moment {
  bool is_second = false;
  DType dtype = DType::kFp32;
  Bytes bytes{};  ///< Bytes per element, scales included.
};

struct OptimizerRule {
  std::string_view name;
  std::string_view doc;
  bool chooses_moments = false;  ///< The types of the moments can be set.
  bool chooses_master = false;   ///< The type of the master copy can be set.
  bool has_blocks = false;       ///< Optimizer::block can be set.
  /// The rule needs whole tensors (norms, orthogonal matrices): for transformers only.
  bool whole_tensors = false;
  /// The moments of a weight matrix of a layer (`is_matrix`), or of any other parameter.
  std::vector<Moment> (*moments)(const Optimizer& optimizer, bool is_matrix);
  std::vector<UpdateStep> (*steps)(const Update& update);
};

/// All rules, ordered by name.
const std::vector<OptimizerRule>& optimizer_rules();
/// \pre the rule is known: yaml_table refuses others.
const OptimizerRule& rule_of(const Optimizer& optimizer);

/// "muon", "adam with moments in bf16 and fp16", "adam with a master copy in bf16": for display.
std::string words_of(const Optimizer& optimizer);

/// Whether the optimizer updates a copy of the parameters instead of the parameters themselves.
bool has_master(const Optimizer& optimizer, DType precision);
/// Bytes per element of that copy, if there is one.
Bytes master_bytes(const Optimizer& optimizer);
/// Bytes per element of the optimizer states: master copy and moments. For Adam in fp32: 12
/// (Rajbhandari et al., "ZeRO", SC 2020: K = 12).
Bytes optimizer_bytes(const Optimizer& optimizer, DType precision, bool is_matrix);

}  // namespace foreshard
