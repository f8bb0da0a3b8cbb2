#include "base/other_names.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"

namespace foreshard {
namespace {

// Names that no rule derives from the key, as launchers of Megatron-LM, DeepSpeed and others and
// the config.json of Hugging Face have them. Sorted.
constexpr std::array<std::pair<std::string_view, std::string_view>, 38> kOtherNames{{
    {"activation_checkpointing", "recompute"},
    {"batch", "global_batch"},
    {"batch_size", "global_batch"},
    {"d_ff", "ffn"},
    {"d_model", "hidden"},
    {"dtype", "precision"},
    {"ffn_hidden_size", "ffn"},
    {"gradient_checkpointing", "recompute"},
    {"hidden_size", "hidden"},
    {"hpz", "shard_replicas"},
    {"hsdp", "shard_replicas"},
    {"intermediate_size", "ffn"},
    {"max_position_embeddings", "sequence"},
    {"max_seq_len", "sequence"},
    {"moe_router_topk", "experts_per_token"},
    {"n_heads", "heads"},
    {"n_layers", "layers"},
    {"num_attention_heads", "heads"},
    {"num_experts", "experts"},
    {"num_heads", "heads"},
    {"num_hidden_layers", "layers"},
    {"num_key_value_heads", "kv_heads"},
    {"num_layers", "layers"},
    {"num_layers_per_virtual_pipeline_stage", "virtual_stages"},
    {"num_query_groups", "kv_heads"},
    {"recompute_granularity", "recompute"},
    {"seq", "sequence"},
    {"seq_len", "sequence"},
    {"seq_length", "sequence"},
    {"seqlen", "sequence"},
    {"sequence_length", "sequence"},
    {"train_batch_size", "global_batch"},
    {"vocab", "vocabulary"},
    {"vocab_size", "vocabulary"},
    {"vp", "virtual_stages"},
    {"vpp", "virtual_stages"},
    {"zero", "zero_stage"},
    {"zero_optimization", "zero_stage"},
}};

// The words between underscores and hyphens: "micro_batch" -> "micro", "batch".
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words(1);
  for (const char c : name) {
    if (c == '_' || c == '-')
      words.emplace_back();
    else
      words.back() += c;
  }
  return words;
}

// Whether `word` abbreviates or extends a candidate of at least two words:
// - it consists of their first letters ("tp" for "tensor_parallel"), also with "s" or "_size" for a
//   size ("mbs" for "micro_batch");
// - or it contains all of them in order ("tensor_model_parallel_size" for "tensor_parallel").
bool stands_for(std::string_view word, std::string_view candidate) {
  const std::vector<std::string> parts = words_of(candidate);
  if (parts.size() < 2) return false;
  std::string initials;
  for (const std::string& part : parts) initials += part.substr(0, 1);
  constexpr std::string_view kSize = "_size";
  std::string_view letters = word;
  if (letters.ends_with(kSize)) letters.remove_suffix(kSize.size());
  if (letters == initials || letters == initials + "s") return true;
  std::size_t found = 0;
  for (const std::string& own : words_of(word))
    if (found < parts.size() && own == parts[found]) ++found;
  return found == parts.size();
}

}  // namespace

std::optional<std::string> named_elsewhere(std::string_view word,
                                           const std::vector<std::string>& candidates) {
  const std::string wanted = lower_case(word);
  const auto named =
      std::ranges::find(kOtherNames, wanted, &decltype(kOtherNames)::value_type::first);
  if (named != kOtherNames.end() &&
      std::ranges::find(candidates, named->second) != candidates.end())
    return std::string(named->second);
  // "expert_tensor_parallel_size" extends "tensor_parallel", too: the longest is meant.
  std::optional<std::string> longest;
  for (const std::string& each : candidates)
    if (stands_for(wanted, lower_case(each)) && each.size() > longest.value_or("").size())
      longest = each;
  return longest;
}

}  // namespace foreshard
