// The keys of frozen parts in YAML.
#include "strategies/graph/frozen.h"

namespace foreshard {

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
