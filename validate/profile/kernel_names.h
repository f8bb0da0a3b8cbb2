/// \file
/// What the kernels of a profile do, by their names: a list that users may extend
/// (configs/profiles/kernels.yaml).
///
///     kernels:
///       - {name: "*flash_fwd_kernel*", kinds: [attention_fwd], source: "..."}
///       - {name: "*splitKreduce_kernel*", kinds: [gemm], part: after, source: "..."}
///     ranges:
///       - {name: "autograd::engine::evaluate_function*", phase: backward, source: "..."}
///
/// The first entry whose pattern fits a name applies; '*' stands for any text.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/yaml/names.h"
#include "base/yaml/table.h"

namespace foreshard::profile {

/// Phase of a step. Recomputation runs in the backward pass.
enum class Phase : std::uint8_t { kForward, kBackward, kOptimizer };
const yaml::Names<Phase>& yaml_names(const Phase*);

/// For a kernel that is no task by itself: which kernel of the same kinds it belongs to.
enum class Part : std::uint8_t {
  kBefore,  ///< The next one, which it prepares.
  kAfter,   ///< The previous one, which it finishes.
};
const yaml::Names<Part>& yaml_names(const Part*);

/// The kind of a memory-bound kernel whose name does not tell its purpose.
inline constexpr std::string_view kAnyPass = "pass";

struct KernelName {
  std::string name{};
  /// "gemm", "attention_fwd", "attention_bwd", a pass or a communication as Programs name them, or
  /// kAnyPass. Empty: work that no task of a Program represents.
  std::vector<std::string> kinds{};
  std::optional<std::string> dtype{};  ///< Data type of a product; empty: the name does not tell.
  std::optional<bool> accumulate{};    ///< Whether a product adds to its result; empty: unknown.
  std::optional<bool> batched{};       ///< Whether it computes several products; empty: unknown.
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

  /// The first entry that fits; null if none does.
  const KernelName* kernel(std::string_view name) const;
  const RangeName* range(std::string_view name) const;
};
/// Catalogue folder: profiles.
const yaml::Table<KernelNames>& yaml_table(const KernelNames*);

}  // namespace foreshard::profile
