/// \file
/// Training samples of unequal lengths in sequences of one length: fine-tuning, long documents.
///
///     model:
///       sequence: 8192
///       samples: {lengths: [512, 2048, 8192], shares: [0.5, 0.3, 0.2], layout: packed}
///
/// Packed: a sequence holds several samples, one after another, and a query sees only keys of its
/// own sample. Attention is block-diagonal; everything else depends on tokens alone. A token in a
/// sample of length L sees (L + 1) / 2 keys on average, counted here as L / 2, as scores are
/// everywhere. Longer samples have more tokens, so that for lengths L_i with shares p_i
///
///     keys of a query = sum p_i L_i (L_i / 2) / sum p_i L_i
///
/// Padded: each sequence is one sample, filled up with meaningless tokens.
/// Source: NVIDIA-NeMo/Megatron-Bridge, src/megatron/bridge/data/datasets/packed_sequence.py;
/// Krell et al., "Efficient sequence packing without cross-contamination", arXiv 2107.02027.
/// Not modelled: waiting for ranks whose samples are longer than other ranks'; in packed sequences,
/// tokens that fill up the sequence, and tokens that round a sample's length up to a multiple of
/// twice the context-parallel ranks; attention kernels that skip padding, and padded sequences that
/// are only as long as the longest of their micro-batch.
#pragma once

#include <cstdint>
#include <vector>

#include "base/yaml/names.h"
#include "base/yaml/table.h"

namespace foreshard {

enum class SampleLayout : std::uint8_t { kPacked, kPadded };

struct Samples {
  std::vector<std::int64_t> lengths{};  ///< Tokens of samples; ascending, distinct.
  /// Share of each length in the number of samples; they add up to 1.
  std::vector<double> shares{};
  SampleLayout layout = SampleLayout::kPacked;

  bool are_packed() const { return layout == SampleLayout::kPacked; }
  double mean_length() const;
  /// Share of the computed tokens that belong to a sample (are not padding).
  double useful_share(std::int64_t sequence) const;
  /// Keys that a query sees on average: half of its own sample or, in a sliding window, at most
  /// `window` keys (0: no window). Counted as in scores_per_query().
  double keys_of_query(std::int64_t window) const;
  /// Length in tokens of equal samples whose queries see the same number of keys on average,
  /// rounded.
  /// \return at most the longest sample.
  std::int64_t equal_length(std::int64_t window) const;
};

const yaml::Names<SampleLayout>& yaml_names(const SampleLayout*);
const yaml::Table<Samples>& yaml_table(const Samples*);

}  // namespace foreshard
