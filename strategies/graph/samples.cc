// Not every packed data set has block-diagonal attention: MLPerf Training's Llama 2 70B reads
// reports in sequences of 8,192 tokens, and attention treats each sequence as one sample
// (seq_start_id [0] in the scripts of its submissions, convert_dataset.py).
#include "strategies/graph/samples.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <numeric>

namespace foreshard {
namespace {

// Keys that a query sees on average in a sample of `tokens` tokens with a sliding window of
// `window` (0: none); as scores_per_query() in strategies/program/ir/kernel.h.
double keys_in_sample(double tokens, std::int64_t window) {
  const double seen = window > 0 ? std::min(static_cast<double>(window), tokens) : tokens;
  return seen - seen * seen / (2 * tokens);
}

std::string fault_in_lengths(const Samples& of) {
  if (of.lengths.empty()) return "name a length, such as [512, 2048]";
  if (of.lengths.front() < 1)
    return fmt::format("a sample has 1 token or more, not {}", of.lengths.front());
  if (std::ranges::adjacent_find(of.lengths, std::ranges::greater_equal()) != of.lengths.end())
    return "lengths are ascending, each named once";
  return {};
}

std::string fault_in_shares(const Samples& of) {
  if (of.shares.size() != of.lengths.size())
    return fmt::format("{} lengths need as many shares, not {}", of.lengths.size(),
                       of.shares.size());
  const double sum = std::accumulate(of.shares.begin(), of.shares.end(), 0.0);
  constexpr double kRounding = 1e-3;
  const auto is_share = [](double share) { return share > 0; };
  if (std::ranges::all_of(of.shares, is_share) && std::abs(sum - 1) <= kRounding) return {};
  return fmt::format("shares of the samples are above 0 and add up to 1, not {:.6g}", sum);
}

}  // namespace

double Samples::mean_length() const {
  double mean = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i)
    mean += shares[i] * static_cast<double>(lengths[i]);
  return mean / std::accumulate(shares.begin(), shares.end(), 0.0);
}

double Samples::useful_share(std::int64_t sequence) const {
  return are_packed() ? 1 : mean_length() / static_cast<double>(sequence);
}

double Samples::keys_of_query(std::int64_t window) const {
  double keys = 0;
  double tokens = 0;
  for (std::size_t i = 0; i < lengths.size(); ++i) {
    const auto length = static_cast<double>(lengths[i]);
    keys += shares[i] * length * keys_in_sample(length, window);
    tokens += shares[i] * length;
  }
  return keys / tokens;
}

// Inverse of keys_in_sample(): a sample not longer than the window has half of its tokens as keys;
// else its length n follows from keys = w - w^2 / 2n.
std::int64_t Samples::equal_length(std::int64_t window) const {
  const double keys = keys_of_query(window);
  const auto w = static_cast<double>(window);
  const double tokens = window > 0 && 2 * keys > w ? w * w / (2 * (w - keys)) : 2 * keys;
  return std::clamp<std::int64_t>(std::llround(tokens), 1, lengths.back());
}

const yaml::Names<SampleLayout>& yaml_names(const SampleLayout*) {
  static const yaml::Names<SampleLayout> names{
      {"packed", SampleLayout::kPacked,
       "A sequence holds several samples, whose queries see the keys of their own alone."},
      {"padded", SampleLayout::kPadded, "A sequence holds one sample and is filled up."},
  };
  return names;
}

const yaml::Table<Samples>& yaml_table(const Samples*) {
  static const auto table =
      yaml::Table<Samples>("samples", "Training samples of unequal lengths.")
          .required("lengths", &Samples::lengths, "Tokens of samples, ascending.")
          .required("shares", &Samples::shares,
                    "Of all samples, those of each length; they add up to 1.")
          .optional("layout", &Samples::layout, "How samples lie in sequences.")
          .check("lengths", fault_in_lengths)
          .check("shares", fault_in_shares);
  return table;
}

}  // namespace foreshard
