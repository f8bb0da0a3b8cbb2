/// \file
/// What kernels of a profile do, by their names: a list that its users add to
/// (configs/profiles/kernels.yaml).
///
///     kernels:
///       - {name: "*flash_fwd_kernel*", kinds: [attention_fwd], source: "..."}
///       - {name: "*splitKreduce_kernel*", kinds: [gemm], part: after, source: "..."}
///     ranges:
///       - {name: "autograd::engine::evaluate_function*", phase: backward, source: "..."}
///
/// The first line whose pattern fits a name counts; '*' stands for any text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/yaml/names.h"
#include "base/yaml/table.h"

namespace foreshard::profile {

/// Of a step. Recomputation runs in the backward pass.
enum class Phase : std::uint8_t { kForward, kBackward, kOptimizer };
const yaml::Names<Phase>& yaml_names(const Phase*);

/// Which kernel of the same kinds this one belongs to, where it is no task by itself.
enum class Part : std::uint8_t {
  kBefore,  ///< The next one: it prepares that.
  kAfter,   ///< The last one: it finishes that.
};
const yaml::Names<Part>& yaml_names(const Part*);

/// The kind of a memory-bound kernel whose name does not tell what it is for.
inline constexpr std::string_view kAnyPass = "pass";

struct KernelName {
  std::string name{};
  /// "gemm", "attention_fwd", "attention_bwd", a pass or a communication as Programs name them, or
  /// kAnyPass. Empty: work that no task stands for.
  std::vector<std::string> kinds{};
  std::optional<std::string> dtype{};  ///< Of a product, where the name tells it.
  std::optional<bool> accumulate{};    ///< Likewise: whether it adds to its result.
  std::optional<bool> batched{};       ///< Likewise: several products at a time.
  std::optional<Part> part{};
  std::string source{};
};
const yaml::Table<KernelName>& yaml_table(const KernelName*);

struct RangeName {
  std::string name{};
  Phase phase = Phase::kForward;
  std::string source{};
};
const yaml::Table<RangeName>& yaml_table(const RangeName*);

struct KernelNames {
  std::vector<KernelName> kernels{};
  std::vector<RangeName> ranges{};

  /// The line that fits; null if none does.
  const KernelName* kernel(std::string_view name) const;
  const RangeName* range(std::string_view name) const;
};
/// Catalogue folder: profiles.
const yaml::Table<KernelNames>& yaml_table(const KernelNames*);

}  // namespace foreshard::profile
