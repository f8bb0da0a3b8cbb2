// Queries, keys and values in one tensor: sizes, settings and faults that packed.cc and
// context.cc share.
#include "strategies/graph/operators/internal/packing.h"

#include <fmt/format.h>

namespace foreshard::operators {

Packing packing_of(const Settings& settings, const Shape& x) {
  const std::int64_t queries = settings.integer("query_heads");
  const std::int64_t keys = settings.integer("kv_heads");
  return {queries, keys, x[2] / (queries + 2 * keys)};
}

std::string packing_fault(const Settings& settings, const Shape& x) {
  const std::int64_t queries = settings.integer("query_heads");
  const std::int64_t keys = settings.integer("kv_heads");
  if (x.size() != 3) return "needs [batch, sequence, columns], not " + text_of(x);
  if (keys < 1 || queries < keys || queries % keys != 0)
    return fmt::format("{} query heads do not divide into {} key heads", queries, keys);
  if (queries > x[2] || x[2] % (queries + 2 * keys) != 0)
    return fmt::format("{} columns do not divide into {} + 2 x {} heads", x[2], queries, keys);
  return {};
}

Grouped grouped(const Packing& packing, const Shape& x, bool whole_sequence, bool whole_row) {
  Grouped g;
  g.packed = {{g.make.factor(x[0], false, "batch")},
              {g.make.factor(x[1], whole_sequence, "sequence")},
              {g.make.factor(packing.keys, whole_row, "groups")}};
  return g;
}

std::vector<SettingDefinition> with_heads(std::vector<SettingDefinition> others) {
  std::vector<SettingDefinition> settings{
      {.name = "query_heads", .fallback = std::int64_t{1}, .required = true, .doc = "Of all."},
      {.name = "kv_heads",
       .fallback = std::int64_t{1},
       .required = true,
       .doc = "Of the keys, and of the values; groups of query heads share them."}};
  settings.insert(settings.end(), others.begin(), others.end());
  return settings;
}

std::vector<SettingDefinition> attention_kernel_settings() {
  return with_heads(
      {{.name = "implementation",
        .fallback = std::string("fused"),
        .doc = "Whose kernel: the usual one of the device, or this one.",
        .words = {"fused", "triton-flash-1", "flash-2", "flash-3", "cudnn"}},
       {.name = "rate", .fallback = 0.0, .doc = "Probability with which a weight is dropped."},
       {.name = "window",
        .fallback = std::int64_t{0},
        .doc = "Tokens that a query sees, itself included; 0: all before it."},
       {.name = "chunked",
        .fallback = false,
        .doc = "The window does not slide: the sequence is cut into chunks of its length."},
       {.name = "causal",
        .fallback = true,
        .doc = "A query sees the keys before it alone; else all, without a window."},
       {.name = "sample",
        .fallback = std::int64_t{0},
        .doc = "Tokens of each of the samples that a sequence is packed of (the last may have "
               "fewer), whose queries see their own alone; 0: it is one sample."}});
}

std::string attention_kernel_fault(const Settings& settings, std::int64_t sequence) {
  const std::int64_t window = settings.integer("window");
  if (window < 0) return fmt::format("a window of {} tokens", window);
  if (window > 0 && !settings.flag("causal")) return "a window needs a causal mask";
  const std::int64_t sample = settings.integer("sample");
  if (sample < 0) return fmt::format("samples of {} tokens", sample);
  if (!settings.flag("chunked")) return rate_fault(settings);
  if (sample > 0) return "packed samples are not cut into chunks";
  if (window == 0 || sequence % window != 0)
    return fmt::format("{} tokens do not divide into chunks of {}", sequence, window);
  return rate_fault(settings);
}

Attention in_window(Attention all, const Settings& settings) {
  const std::int64_t window = settings.integer("window");
  const std::int64_t sample = settings.integer("sample");
  if (sample < all.key_length) all.sample = sample;
  if (window == 0 || window >= all.key_length) return all;
  if (!settings.flag("chunked")) {
    all.window = window;
    return all;
  }
  const std::int64_t chunks = all.key_length / window;
  all.batch *= chunks;
  all.query_length = (all.query_length + chunks - 1) / chunks;
  all.key_length = window;
  return all;
}

RuleMaker::Dimensions sinks_of(const RuleMaker::Dimensions& packed) {
  return {packed[2]};
}

}  // namespace foreshard::operators
