/// \file
/// Layers of a state-space model (Mamba-2): a recurrence over the tokens in place of attention.
///
/// For each token the projection in_proj makes a gate z, values x, matrices B and C, and a step dt.
/// A causal convolution over the last `conv` tokens, each channel by itself, followed by silu, is
/// applied to x, B and C. Every head h has a state of head_dim x state numbers,
///
///     S_t = exp(dt_t A_h) S_(t-1) + dt_t x_t B_t^T,    y_t = S_t C_t + D_h x_t
///
/// and the result of the layer is out_proj(rms_norm(y silu(z))), with a norm over the heads of a
/// group. The heads of a group share B and C, as query heads share a key head. Tensor-parallel
/// ranks hold whole groups.
/// Source: Dao and Gu, "Transformers are SSMs", arXiv 2405.21060, sections 6 to 8;
/// NVIDIA/Megatron-LM, megatron/core/ssm/mamba_mixer.py.
/// Not modelled: Mamba-1, whose steps and decays differ by channel (Jamba); biases of the two
/// projections; context parallelism; initial states and packed samples.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/units.h"
#include "base/yaml/table.h"

namespace foreshard {

struct Mamba {
  std::int64_t heads = 0;
  std::int64_t head_dim = 64;  ///< Channels of a head.
  std::int64_t groups = 1;     ///< Groups of heads; the heads of a group share B and C.
  std::int64_t state = 128;    ///< Columns of a head's state.
  std::int64_t conv = 4;       ///< Tokens under the convolution's window.
  bool conv_bias = true;
  std::int64_t chunk = 256;  ///< Tokens of a chunk, within which the recurrence is matrix products.

  std::int64_t width() const { return heads * head_dim; }
  /// Width of x, B and C together.
  std::int64_t conv_width() const { return width() + 2 * groups * state; }
  /// Columns of in_proj's result: z, x, B, C and dt.
  std::int64_t projected() const { return width() + conv_width() + heads; }
  bool operator==(const Mamba&) const = default;
};

const yaml::Table<Mamba>& yaml_table(const Mamba*);

/// The letters of a model's pattern. Each stands for a layer with one branch and one norm.
/// Source: Nemotron-H's "hybrid_override_pattern", as huggingface/transformers and Megatron-LM read
/// it (models/nemotron_h/configuration_nemotron_h.py).
inline constexpr char kMambaLetter = 'M';
inline constexpr char kAttentionLetter = '*';
inline constexpr char kFeedForwardLetter = '-';
inline constexpr char kExpertsLetter = 'E';
/// What is wrong with a pattern for `layers` layers; empty if nothing is.
std::string pattern_fault(std::string_view pattern, std::int64_t layers);

}  // namespace foreshard
