/// \file
/// Optimizers: what each keeps of a parameter, and what one step of it runs on a rank.
///
///     strategy:
///       optimizer: {first_moment: bf16, second_moment: bf16}   # Adam, as DeepSeek-V3
///       optimizer: {rule: muon}
///
/// A step is a list of kernels and exchanges, which lowering and search read alike. The reduction
/// of gradients, and the gather of updated parameters, are the plan's and do not depend on it.
///
/// To add one: a file in optimizers/ that defines an OptimizerRule, its declaration in
/// internal/optimizers.h and its line in optimizer.cc.
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

/// What a strategy says of it.
struct Optimizer {
  std::string rule = "adam";  ///< A name of optimizer_rules().
  DType first_moment = DType::kFp32;
  DType second_moment = DType::kFp32;
  /// Of the copy of the parameters that is updated. The parameters' own type: there is none, they
  /// are updated themselves.
  DType master = DType::kFp32;
  /// Of a master copy in fp32 only the 16 bits are kept that bf16 parameters lack.
  bool remainders = false;
  std::int64_t block = 256;  ///< Elements of a moment that share a scale (adam-8bit).
  bool operator==(const Optimizer&) const = default;
};
const yaml::Table<Optimizer>& yaml_table(const Optimizer*);

/// Whether a parameter is a weight of a layer: not an embedding, the head, a norm or a bias.
bool is_matrix_of_layer(const Tensor& parameter);

/// Weights of layers of one shape, as one rank holds them. An expert's is a matrix of its own.
struct Matrices {
  std::int64_t rows = 0;      ///< Of the whole matrix.
  std::int64_t columns = 0;   ///< Likewise.
  std::int64_t count = 0;     ///< Of which the rank holds a part.
  std::vector<Axis> split{};  ///< The axes whose ranks each hold a part of every one.
  bool operator==(const Matrices&) const = default;
};
/// Elements of them that one rank holds.
std::int64_t elements_of(const Matrices& matrices, const std::vector<MeshAxis>& mesh);
/// Adds them to those of their shape.
void add_matrices(std::vector<Matrices>& to, const Matrices& more);

/// Parameters that a rank updates.
struct Updated {
  std::vector<Axis> cut{};    ///< The axes over which what the optimizer keeps of them is cut.
  std::int64_t elements = 0;  ///< On one rank, not cut.
  std::int64_t tensors = 0;   ///< Counted where the rule takes whole tensors; so are matrices.
  std::vector<Matrices> matrices{};
};

/// A step of an optimizer on one rank.
struct Update {
  const Optimizer& optimizer;
  OptimizerKernels kernels;
  DType precision;
  const std::vector<MeshAxis>& mesh;
  std::vector<Updated> updated{};

  /// Elements of its share of `count` that lie as `of` does: the last shard is padded.
  std::int64_t share(std::int64_t count, const Updated& of) const;
  /// Its share of all elements; of those in matrices alone.
  std::int64_t elements() const;
  std::int64_t matrix_elements() const;
};

struct UpdateKernel {
  std::string_view name;
  Kernel kernel;
  std::int64_t times = 1;
};
/// Of a flat buffer: gathered from shards over the axes, or (`sums`) added up over them. What is
/// gathered has room of its own until the next exchange.
struct UpdateExchange {
  std::string_view name;
  bool sums = false;
  std::int64_t elements = 0;  ///< Of the whole.
  DType dtype = DType::kFp32;
  std::vector<Axis> axes{};
  std::int64_t times = 1;
};
using UpdateStep = std::variant<UpdateKernel, UpdateExchange>;

/// A state beside the master copy.
struct Moment {
  bool is_second = false;
  DType dtype = DType::kFp32;
  Bytes bytes{};  ///< Of an element, scales included.
};

struct OptimizerRule {
  std::string_view name;
  std::string_view doc;
  bool chooses_moments = false;  ///< Their types can be set.
  bool chooses_master = false;   ///< Likewise that of the master copy.
  bool has_blocks = false;       ///< Optimizer::block can be set.
  /// It takes tensors whole (norms, orthogonal matrices): of transformers alone.
  bool whole_tensors = false;
  /// Of a weight of a layer (a matrix), and of all other parameters.
  std::vector<Moment> (*moments)(const Optimizer& optimizer, bool is_matrix);
  std::vector<UpdateStep> (*steps)(const Update& update);
};

/// In the order of their names.
const std::vector<OptimizerRule>& optimizer_rules();
/// \pre the rule is known: yaml_table refuses others.
const OptimizerRule& rule_of(const Optimizer& optimizer);

/// "muon", "adam with moments in bf16 and fp16", "adam with a master copy in bf16": for people.
std::string words_of(const Optimizer& optimizer);

/// Whether the optimizer updates a copy of the parameters, rather than themselves.
bool has_master(const Optimizer& optimizer, DType precision);
/// Bytes of an element of that copy, if there is one.
Bytes master_bytes(const Optimizer& optimizer);
/// Bytes per element of what training keeps beside the parameters: the master copy and moments.
/// Adam's in fp32: 12 (Rajbhandari et al., "ZeRO", SC 2020: K = 12).
Bytes optimizer_bytes(const Optimizer& optimizer, DType precision, bool is_matrix);

}  // namespace foreshard
