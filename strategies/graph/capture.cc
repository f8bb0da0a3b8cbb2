// Names of what CUDA graphs capture, in YAML and in Megatron's words. A further part gets an
// enumerator in capture.h a row in each table here, and a case in lacking().
#include "strategies/graph/capture.h"

#include <algorithm>
#include <array>
#include <utility>

#include "strategies/graph/model.h"

namespace foreshard {

const yaml::Names<Capture>& yaml_names(const Capture*) {
  static const yaml::Names<Capture> names{
      {"attention", Capture::kAttention,
       "Attention, from the norm before it to the sum with the stream."},
      {"mlp", Capture::kMlp, "A dense feed-forward layer likewise."},
      {"router", Capture::kRouter, "From the norm before the router to the choice of experts."},
      {"mamba", Capture::kMamba, "A Mamba layer, from its norm to the sum with the stream."},
      {"step", Capture::kStep,
       "All passes of the step; experts then have slots for a fixed number."},
  };
  return names;
}

std::string_view lacking(const Model& model, Capture one) {
  switch (one) {
    case Capture::kAttention:
      return model.has_mixer(Mixer::kAttention) ? "" : "attention";
    case Capture::kMlp:
      return model.has_dense_layers() ? "" : "dense feed-forward layers";
    case Capture::kRouter:
      return model.experts > 0 ? "" : "experts";
    case Capture::kMamba:
      return model.has_mixer(Mixer::kMamba) ? "" : "Mamba layers";
    case Capture::kNone:
    case Capture::kStep:
      break;
  }
  return "";
}

namespace {

constexpr std::array kMegatronScopes{
    std::pair("attn", Capture::kAttention), std::pair("mlp", Capture::kMlp),
    std::pair("moe_router", Capture::kRouter), std::pair("mamba", Capture::kMamba),
    std::pair("full_iteration", Capture::kStep)};

}  // namespace

std::optional<Capture> find_megatron_scope(std::string_view word) {
  for (const auto& [theirs, ours] : kMegatronScopes)
    if (word == theirs) return ours;
  return std::nullopt;
}

std::string_view megatron_scope(Capture one) {
  for (const auto& [theirs, ours] : kMegatronScopes)
    if (one == ours) return theirs;
  return {};
}

bool is_captured(Capture one, const std::vector<Capture>& captured) {
  const auto has = [&](Capture wanted) {
    return std::ranges::find(captured, wanted) != captured.end();
  };
  return has(Capture::kStep) || (one != Capture::kNone && has(one));
}

}  // namespace foreshard
