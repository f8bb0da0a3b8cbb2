#include "evidence/conversion.h"

#include <array>
#include <charconv>
#include <fmt/format.h>

namespace foreshard::accuracy {
namespace {

constexpr std::array kConventions{
    Convention{"hardware_TFLOPS_per_GPU", "", FlopsConvention::kHardware,
               "Narayanan et al., SC 2021, equation 3: full recomputation, attention whole"},
    Convention{"model_TFLOPS_per_GPU", "stas00", FlopsConvention::kCausalHalf,
               "stas00/ml-engineering, when-to-upgrade-gpus: 6 N tokens + 6 s^2 h l"},
    Convention{"model_TFLOPS_per_GPU", "Megatron-Bridge", FlopsConvention::kCausalHalf,
               "NVIDIA-NeMo/Megatron-Bridge: training/utils/flop_utils.py"},
    Convention{"model_TFLOPS_per_GPU", "ModelZoo", FlopsConvention::kCausalHalf,
               "yanring/Megatron-MoE-ModelZoo, as Megatron-Bridge"},
    Convention{"model_TFLOPS_per_GPU", "", FlopsConvention::kModel,
               "Korthikanti et al., MLSys 2023, appendix A: no recomputation, attention whole"},
    Convention{"MFU", "", FlopsConvention::kModel,
               "Korthikanti et al., MLSys 2023, appendix A; MegaScale (NSDI 2024) likewise"},
};

// The first number in `text`: "percent of 989.5 TFLOP/s" -> 989.5.
std::optional<double> number_in(std::string_view text) {
  const auto begin = text.find_first_of("0123456789");
  if (begin == std::string_view::npos) return std::nullopt;
  double value = 0;
  const auto [end, status] = std::from_chars(text.data() + begin, text.data() + text.size(), value);
  if (status != std::errc()) return std::nullopt;
  return value;
}

Error unknown_unit(const TrainingRow& row) {
  return {Error::Code::kUnsupported,
          fmt::format("unit '{}' of metric '{}' is not known", row.unit, row.metric)};
}

}  // namespace

const Convention* convention_of(const TrainingRow& row) {
  for (const Convention& convention : kConventions)
    if (row.metric == convention.metric && row.source.find(convention.source) != std::string::npos)
      return &convention;
  return nullptr;
}

Flops step_flops(const Model& model, double samples, FlopsConvention convention) {
  const Flops all = model_flops(model, samples);
  const double tokens = samples * static_cast<double>(model.sequence);
  switch (convention) {
    case FlopsConvention::kModel:
      return all;
    case FlopsConvention::kHardware: {
      const Flops logits = 6 * tokens * static_cast<double>(model.hidden) *
                           static_cast<double>(model.vocabulary) * 1_FLOP;
      return all + (all - logits) / 3;
    }
    case FlopsConvention::kCausalHalf: {
      const Flops scores = 12 * tokens * static_cast<double>(model.sequence) *
                           static_cast<double>(model.heads * model.head_size()) *
                           static_cast<double>(model.layers) * 1_FLOP;
      return all - scores / 2;
    }
  }
  FORESHARD_CHECK(false);
}

Result<Seconds> measured_step(const TrainingRow& row, const Model& model, std::int64_t gpus) {
  const auto samples = static_cast<double>(*row.gbs);
  const double tokens = samples * static_cast<double>(model.sequence);
  const auto devices = static_cast<double>(gpus);
  const bool per_gpu = row.metric.ends_with("/GPU");
  if (row.metric == "step_time") {
    if (row.unit == "s") return row.value * 1_s;
    if (row.unit == "ms") return row.value * 1_ms;
    return unknown_unit(row);
  }
  if (row.metric.starts_with("tokens/s"))
    return tokens / (row.value * (per_gpu ? devices : 1)) * 1_s;
  if (row.metric.starts_with("samples/s"))
    return samples / (row.value * (per_gpu ? devices : 1)) * 1_s;
  if (const Convention* convention = convention_of(row)) {
    const Flops flops = step_flops(model, samples, convention->flops);
    if (row.metric != "MFU") {
      if (row.unit != "TFLOP/s/GPU") return unknown_unit(row);
      return flops / (row.value * devices * 1_TFLOP_s);
    }
    const auto peak = number_in(row.unit);
    if (!row.unit.starts_with("percent of") || !peak) return unknown_unit(row);
    return flops / (row.value / 100 * *peak * devices * 1_TFLOP_s);
  }
  return Error{Error::Code::kUnsupported,
               fmt::format("metric '{}' is not of a whole training step", row.metric)};
}

std::optional<Seconds> noted_step(const TrainingRow& row) {
  constexpr std::string_view kKey = "derived step_time=";
  const auto at = row.notes.find(kKey);
  if (at == std::string::npos) return std::nullopt;
  const auto value = number_in(std::string_view(row.notes).substr(at + kKey.size()));
  if (!value) return std::nullopt;
  return *value * 1_s;
}

}  // namespace foreshard::accuracy
