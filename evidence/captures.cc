#include "evidence/captures.h"

#include <string_view>

#include "base/text.h"

namespace foreshard::accuracy {
namespace {

// `wanted` without the parts that the model lacks.
std::vector<Capture> of_model(std::vector<Capture> wanted, const Model& model) {
  std::erase_if(wanted, [&](Capture one) { return !lacking(model, one).empty(); });
  return wanted;
}

// The scopes in a list such as "['attn', 'moe_router', 'moe_preprocess']" or a word such as "mlp".
std::vector<Capture> scopes_in(std::string_view words) {
  std::vector<Capture> found;
  while (!words.empty()) {
    const auto end = words.find_first_not_of("abcdefghijklmnopqrstuvwxyz_");
    if (const auto known = find_megatron_scope(words.substr(0, end))) found.push_back(*known);
    if (end == std::string_view::npos) break;
    words.remove_prefix(end + 1);
  }
  return found;
}

}  // namespace

bool is_rack(const TrainingRow& row) {
  return contains(row.gpu, "GB200") || contains(row.gpu, "GB300");
}

std::vector<Capture> graphs_of(const TrainingRow& row, const Model& model, bool is_one,
                               std::vector<std::string>& assumed) {
  const std::string_view notes = row.notes;
  const bool is_of_bridge = contains(row.framework, "Megatron-Bridge");
  const bool drops = contains(notes, "tokendrop") && contains(row.gpu, "B200") && is_of_bridge;
  const bool is_full = contains(notes, "full_iteration") || contains(notes, "CUDA graphs full") ||
                       contains(notes, "CUDA graphs mcore+full");
  if (is_one || drops || is_full) return {Capture::kStep};
  if (contains(notes, "CUDA graphs mcore") || contains(notes, "CUDA graphs layer"))
    return of_model({Capture::kAttention, Capture::kMlp, Capture::kMamba}, model);
  constexpr std::string_view kKey = "cuda_graph_scope=";
  if (const auto at = notes.find(kKey); at != std::string_view::npos)
    return of_model(
        scopes_in(notes.substr(at + kKey.size(), notes.find(';', at) - at - kKey.size())), model);
  if (!is_of_bridge || !is_rack(row) || model.experts == 0 || contains(notes, "recipe")) return {};
  assumed.emplace_back("cuda_graphs");
  return of_model({Capture::kAttention, Capture::kRouter}, model);
}

}  // namespace foreshard::accuracy
