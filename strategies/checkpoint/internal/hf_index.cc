#include "strategies/checkpoint/internal/hf_index.h"

#include <map>
#include <nlohmann/json.hpp>

#include "strategies/checkpoint/hugging_face.h"

namespace foreshard::checkpoint::internal {

std::optional<std::string> hf_index(const ConversionPlan& plan) {
  const Target& target = plan.target;
  if (!target.origin.starts_with(kHuggingFace) || target.format != FileFormat::kSafetensors)
    return std::nullopt;
  std::int64_t total = 0;
  std::map<std::string, std::string> weight_map;
  for (const TargetFile& file : plan.files) {
    for (const TargetFile::Slice& slice : file.slices) {
      const TensorEntry& tensor = target.tensors[static_cast<std::size_t>(slice.tensor)];
      if (slice.box != whole_of(tensor.logical())) return std::nullopt;
      // The first of a tensor's replicas counts.
      const bool is_new =
          weight_map.emplace(tensor.name, shard_name(file.rank, target.format)).second;
      if (is_new) total += *bytes_of(tensor.type, tensor.shape);
    }
  }
  const nlohmann::ordered_json index{{"metadata", {{"total_size", total}}},
                                     {"weight_map", weight_map}};
  return index.dump(2) + "\n";
}

}  // namespace foreshard::checkpoint::internal
