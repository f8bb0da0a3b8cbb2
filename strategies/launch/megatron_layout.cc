// Reads and writes Megatron's notation of pipeline stages (internal/megatron.h, StageLayout), for
// megatron_family.cc. Counts are layers; a text that is no such notation is an error.
#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <utility>

#include "base/limits.h"

#include "strategies/launch/internal/megatron.h"

// Source: NVIDIA/Megatron-LM 00caa53af,
// megatron/core/transformer/pipeline_parallel_layer_layout.py (PipelineParallelLayerLayout).
namespace foreshard::launch::internal {
namespace {

Error no_layout(std::string_view text, std::string_view why) {
  return {Error::Code::kInvalidInput,
          fmt::format("'{}' is no layout of stages: {}", text.substr(0, 80), why)};
}

// Writes out the repetitions of brackets (`brackets`) or of single letters (else).
Result<std::string> unrolled(std::string_view text, bool brackets) {
  const std::size_t most = limits::raised(limits::kExpanded);
  std::string all;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (all.size() >= most) return no_layout(text, "it is too long");
    std::string_view unit = text.substr(at, 1);
    if (brackets) {
      if (unit != "(") {
        all += unit;
        continue;
      }
      const std::size_t end = text.find(')', at);
      if (end == std::string_view::npos) return no_layout(text, "a bracket is not closed");
      unit = text.substr(at + 1, end - at - 1);
      at = end;
    }
    std::int64_t times = 1;
    if (at + 1 < text.size() && text[at + 1] == '*') {
      const char* const last = text.data() + text.size();
      const auto read = std::from_chars(text.data() + at + 2, last, times);
      if (read.ec != std::errc() || times < 0)
        return no_layout(text, "a number of times stands behind '*'");
      at = static_cast<std::size_t>(read.ptr - text.data()) - 1;
    } else if (brackets) {
      return no_layout(text, "brackets hold what is repeated: (tt|)*2");
    }
    if (std::cmp_greater(times, most) ||
        static_cast<std::size_t>(times) * unit.size() > most - all.size())
      return no_layout(text, "it is too long");
    for (std::int64_t i = 0; i < times; ++i) all += unit;
  }
  return all;
}

}  // namespace

Result<StageLayout> read_layout(std::string_view text) {
  std::string letters;
  for (const char c : text)
    if (c != ',' && c != ' ') letters += c;
  if (letters.size() > limits::raised(limits::kExpanded)) return no_layout(text, "it is too long");
  FORESHARD_ASSIGN(letters, unrolled(letters, true));
  FORESHARD_ASSIGN(letters, unrolled(letters, false));
  StageLayout layout{.layers = {0}};
  std::size_t last_prediction = 0;
  std::size_t first_prediction = 0;
  for (const char c : letters) {
    const std::size_t stage = layout.layers.size();
    if (c == '|') {
      layout.layers.push_back(0);
    } else if (c == 't') {
      ++layout.layers.back();
    } else if (c == 'm') {
      if (first_prediction == 0) first_prediction = stage;
      last_prediction = stage;
    } else if (c != 'E' && c != 'L') {
      return no_layout(text, fmt::format("'{}' is none of E, t, m, L", c));
    }
  }
  if (!letters.starts_with('E') || !letters.ends_with('L'))
    return no_layout(text, "it begins with the embedding (E) and ends with the loss (L)");
  layout.predictions_apart = last_prediction > 0 && first_prediction < layout.layers.size();
  return layout;
}

std::string written_layout(const std::vector<std::int64_t>& layers, std::int64_t predictions) {
  std::string text = "E";
  for (std::size_t stage = 0; stage < layers.size(); ++stage) {
    if (stage > 0) text += "|";
    if (layers[stage] == 1) text += "t";
    if (layers[stage] > 1) text += fmt::format("t*{}", layers[stage]);
  }
  return text + std::string(static_cast<std::size_t>(predictions), 'm') + "L";
}

}  // namespace foreshard::launch::internal
