// The keys of Mamba layers in YAML, and their checks.
#include "strategies/graph/mamba.h"

#include <fmt/format.h>

namespace foreshard {
namespace {

constexpr double kMostHeads = 1 << 12;
constexpr double kMostColumns = 1 << 16;
constexpr double kMostConvTokens = 1 << 16;

std::string mamba_size_fault(std::int64_t size, const char* of_what) {
  return size > 0 ? "" : fmt::format("a Mamba layer has {}: give 1 or more", of_what);
}

}  // namespace

const yaml::Table<Mamba>& yaml_table(const Mamba*) {
  static const auto table =
      yaml::Table<Mamba>("mamba", "The Mamba-2 layers of a model (`pattern` says which).")
          .required("heads", &Mamba::heads, "Heads of a layer, each with a state.",
                    yaml::between(0, kMostHeads))
          .optional("head_dim", &Mamba::head_dim, "Channels of a head.",
                    yaml::between(0, kMostColumns))
          .optional("groups", &Mamba::groups, "Groups of heads that share B and C.",
                    yaml::between(0, kMostHeads))
          .optional("state", &Mamba::state, "Columns of a head's state.",
                    yaml::between(0, kMostColumns))
          .optional("conv", &Mamba::conv, "Tokens that the convolution sees.",
                    yaml::between(0, kMostConvTokens))
          .optional("conv_bias", &Mamba::conv_bias, "Whether the convolution has a bias.")
          .optional("chunk", &Mamba::chunk,
                    "Tokens whose part of the recurrence is computed as matrix products.",
                    yaml::between(0, kMostConvTokens))
          .check("heads", [](const Mamba& m) { return mamba_size_fault(m.heads, "heads"); })
          .check(
              "head_dim",
              [](const Mamba& m) { return mamba_size_fault(m.head_dim, "channels in each head"); })
          .check("groups",
                 [](const Mamba& m) { return mamba_size_fault(m.groups, "groups of heads"); })
          .check("groups",
                 [](const Mamba& m) -> std::string {
                   if (m.groups < 1 || m.heads % m.groups == 0) return {};
                   return fmt::format(
                       "{} heads do not form {} groups of equal size; use a divisor "
                       "of heads",
                       m.heads, m.groups);
                 })
          .check("state",
                 [](const Mamba& m) { return mamba_size_fault(m.state, "a state in each head"); })
          .check(
              "conv",
              [](const Mamba& m) { return mamba_size_fault(m.conv, "a convolution over tokens"); })
          .check("chunk",
                 [](const Mamba& m) { return mamba_size_fault(m.chunk, "chunks of tokens"); });
  return table;
}

std::string pattern_fault(std::string_view pattern, std::int64_t layers) {
  constexpr std::string_view kLetters = "M*-E";
  const std::size_t unknown = pattern.find_first_not_of(kLetters);
  if (unknown != std::string_view::npos)
    return fmt::format(
        "pattern has '{}' for layer {}, which is no kind of layer; use M (Mamba), * (attention), - "
        "(feed-forward layer) or E (experts)",
        pattern[unknown], unknown);
  if (static_cast<std::int64_t>(pattern.size()) != layers)
    return fmt::format("pattern has {} letters for {} layers; give one for each layer",
                       pattern.size(), layers);
  return {};
}

}  // namespace foreshard
