/// \file
/// Training samples of unequal lengths in sequences of one length: fine-tuning, long documents.
///
///     model:
///       sequence: 8192
///       samples: {lengths: [512, 2048, 8192], shares: [0.5, 0.3, 0.2], layout: packed}
///
/// Packed, a sequence holds samples one behind another, and a query sees keys of its own sample
/// alone: attention is block-diagonal, everything else goes by tokens. A token in a sample of L has
/// (L + 1) / 2 keys before it on average, L / 2 as all scores are counted here, and a longer sample
/// has more tokens: of lengths L_i with shares p_i,
///
///     keys of a query = sum p_i L_i (L_i / 2) / sum p_i L_i
///
/// Padded, each sequence is one sample, and tokens without meaning behind it.
/// Source: NVIDIA-NeMo/Megatron-Bridge, src/megatron/bridge/data/datasets/packed_sequence.py;
/// Krell et al., "Efficient sequence packing without cross-contamination", arXiv 2107.02027.
/// Not modelled: ranks whose samples are longer than those of others, for which these wait; tokens
/// that fill up sequences which samples do not, and those that make a sample's length a multiple of
/// twice the context-parallel ranks; padding that kernels of attention skip, and sequences that are
/// only as long as the longest of their micro-batch.
#pragma once

#include <cstdint>
#include <vector>

#include "base/yaml/names.h"
#include "base/yaml/table.h"

namespace foreshard {

enum class SampleLayout : std::uint8_t { kPacked, kPadded };

struct Samples {
  std::vector<std::int64_t> lengths{};  ///< Tokens of samples; ascending, each once.
  std::vector<double> shares{};         ///< Of all samples, those of each length; add up to 1.
  SampleLayout layout = SampleLayout::kPacked;

  bool are_packed() const { return layout == SampleLayout::kPacked; }
  double mean_length() const;
  /// Of tokens that are computed, those that belong to a sample.
  double useful_share(std::int64_t sequence) const;
  /// Keys that a query sees on average, half of its own sample or, in a window that slides, at
  /// most `window` of them; 0: there is none. As scores_per_query() counts them.
  double keys_of_query(std::int64_t window) const;
  /// Tokens of equal samples whose queries see as many keys, to the nearest whole number.
  /// \return not above the longest sample.
  std::int64_t equal_length(std::int64_t window) const;
};

const yaml::Names<SampleLayout>& yaml_names(const SampleLayout*);
const yaml::Table<Samples>& yaml_table(const Samples*);

}  // namespace foreshard
