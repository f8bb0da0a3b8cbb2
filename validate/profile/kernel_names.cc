// Reads the list that says what kernels do by their names (kernel_names.h), for match.cc and
// `calibrate --kernel-names`. A name that no pattern fits has no kind.
#include "validate/profile/kernel_names.h"

#include <algorithm>

#include "base/glob.h"
#include "base/text.h"

#include "strategies/program/ir/kernel.h"
#include "strategies/program/ir/program.h"

namespace foreshard::profile {
namespace {

template <class Line>
const Line* first_fit(const std::vector<Line>& lines, std::string_view name) {
  const auto step = [](std::string_view pattern, std::string_view text) {
    return letter_step(pattern, text);
  };
  const auto found = std::ranges::find_if(
      lines, [&](const Line& line) { return matches_glob(line.name, name, step); });
  return found == lines.end() ? nullptr : &*found;
}

std::string fault_in_kinds(const KernelName& line) {
  for (const std::string& kind : line.kinds) {
    const bool known = kind == "gemm" || kind == "attention_fwd" || kind == "attention_bwd" ||
                       kind == kAnyPass || find_pass(kind) != nullptr ||
                       program::find_collective(kind);
    if (!known)
      return "'" + kind +
             "' is no kind of task; there are gemm, attention_fwd, attention_bwd, pass, passes as "
             "Programs name them (rms_norm_fwd) and communications (all_reduce)";
  }
  return {};
}

}  // namespace

const yaml::Names<Phase>& yaml_names(const Phase*) {
  static const yaml::Names<Phase> names{
      {"forward", Phase::kForward, "Of the forward pass."},
      {"backward", Phase::kBackward, "Of the backward pass, with what it computes again."},
      {"optimizer", Phase::kOptimizer, "Of the optimizer."},
  };
  return names;
}

const yaml::Names<Part>& yaml_names(const Part*) {
  static const yaml::Names<Part> names{
      {"before", Part::kBefore, "It prepares the next kernel of these kinds."},
      {"after", Part::kAfter, "It finishes the last kernel of these kinds."},
  };
  return names;
}

const yaml::Table<KernelName>& yaml_table(const KernelName*) {
  using K = KernelName;
  static const auto table =
      yaml::Table<K>("kernel", "Kernels by their names.")
          .required("name", &K::name, "Pattern of the whole name; '*' stands for any text.")
          .required(
              "kinds", &K::kinds,
              "What tasks they may be: gemm, attention_fwd, attention_bwd, passes and "
              "communications as Programs name them, or pass, for any pass that stands there. "
              "Empty: none.")
          .optional("dtype", &K::dtype, "Of a product, where the name tells it.")
          .optional("accumulate", &K::accumulate, "Of a product: whether it adds to its result.")
          .optional("batched", &K::batched, "Of a product: whether it is several at a time.")
          .optional("part", &K::part, "Where it is a part of another kernel's task.")
          .required("source", &K::source, "Where the name comes from.")
          .check("kinds", fault_in_kinds)
          .check("dtype", [](const K& line) {
            return line.dtype && !find_dtype(*line.dtype)
                       ? "'" + *line.dtype + "' is no type; there are " + join(dtype_names())
                       : std::string();
          });
  return table;
}

const yaml::Table<RangeName>& yaml_table(const RangeName*) {
  using R = RangeName;
  static const auto table =
      yaml::Table<R>("range", "Operators and named ranges around launches.")
          .required("name", &R::name, "Pattern of the whole name; '*' stands for any text.")
          .required("phase", &R::phase, "What part of a step runs inside.")
          .required("source", &R::source, "Where the name comes from.");
  return table;
}

const KernelName* KernelNames::kernel(std::string_view name) const {
  return first_fit(kernels, name);
}

const RangeName* KernelNames::range(std::string_view name) const {
  return first_fit(ranges, name);
}

const yaml::Table<KernelNames>& yaml_table(const KernelNames*) {
  using N = KernelNames;
  static const auto table =
      yaml::Table<N>("kernel_names", "What kernels of a profile do, by their names.")
          .folder("profiles")
          .optional("kernels", &N::kernels, "The first line that fits a kernel's name counts.")
          .optional("ranges", &N::ranges,
                    "Likewise for operators and named ranges, from the innermost outwards.");
  return table;
}

}  // namespace foreshard::profile
