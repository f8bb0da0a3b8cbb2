// The keys of adapters in YAML.
#include "strategies/graph/adapters.h"

#include <algorithm>

namespace foreshard {
namespace {

constexpr double kMaxRank = 1 << 16;

}  // namespace

bool Adapters::are_at(AdapterTarget target) const {
  return std::ranges::find(targets, target) != targets.end();
}

const yaml::Names<AdapterTarget>& yaml_names(const AdapterTarget*) {
  static const yaml::Names<AdapterTarget> names{
      {"qkv", AdapterTarget::kQkv, "The query, key and value projection."},
      {"attention-out", AdapterTarget::kAttentionOut, "The output projection of attention."},
      {"mlp-up", AdapterTarget::kMlpUp, "The first product of the feed-forward layer."},
      {"mlp-down", AdapterTarget::kMlpDown, "The last product of the feed-forward layer."},
  };
  return names;
}

Bytes nf4_bytes() {
  constexpr double kScaled = 64;        // weights that share a scale
  constexpr double kScaledTwice = 256;  // first scales that share a second scale
  return (0.5 + (1 + 4 / kScaledTwice) / kScaled) * 1_B;
}

const yaml::Names<AdapterBase>& yaml_names(const AdapterBase*) {
  static const yaml::Names<AdapterBase> names{
      {"plain", AdapterBase::kPlain, "As `precision` of the strategy says."},
      {"nf4", AdapterBase::kNf4,
       "In 4 bits with quantized scales; each product brings them to `precision` first (QLoRA)."},
  };
  return names;
}

const yaml::Table<Adapters>& yaml_table(const Adapters*) {
  static const auto table =
      yaml::Table<Adapters>("adapters", "Low-rank adapters (LoRA), which alone are trained.")
          .required("rank", &Adapters::rank, "Columns of A and rows of B, in x A B.",
                    yaml::at_most(kMaxRank))
          .optional("targets", &Adapters::targets, "The linear layers that have one.")
          .optional("dropout", &Adapters::dropout, "Whether what A reads is dropped out.")
          .optional("base", &Adapters::base,
                    "How the frozen weights of the layers' linear layers are held.")
          .check("rank",
                 [](const Adapters& of) -> std::string {
                   if (of.rank > 0) return {};
                   return "an adapter has a rank of 1 or more; leave out adapters to train all "
                          "parameters";
                 })
          .check("targets", [](const Adapters& of) -> std::string {
            if (of.targets.empty()) return "name a layer, such as [qkv, attention-out]";
            auto sorted = of.targets;
            std::ranges::sort(sorted);
            if (std::ranges::adjacent_find(sorted) != sorted.end())
              return "a layer is named twice; it has one adapter";
            return {};
          });
  return table;
}

const yaml::Table<Frozen>& yaml_table(const Frozen*) {
  static const auto table =
      yaml::Table<Frozen>("frozen", "Parts of a model that are not trained.")
          .optional("embedding", &Frozen::embedding,
                    "Whether the embedding is, with positions and its norm.")
          .optional("layers", &Frozen::layers, "The first so many layers are.",
                    yaml::between(0, 1 << 14))
          .optional("head", &Frozen::head, "Whether the last norm and the output projection are.");
  return table;
}

}  // namespace foreshard
