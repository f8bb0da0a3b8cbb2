/// \file
/// A model from the `config.json` of a Hugging Face repository: the decoders and encoders of
/// Transformers that internal/hf_types_llama.cc, hf_types_mixtures.cc, hf_types_gpt.cc,
/// hf_types_mamba.cc and hf_types_encoders.cc list.
///
///     auto read = read_hf_config(R"({"model_type": "llama"})", "mine", 4096);
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

#include "strategies/graph/model.h"

namespace foreshard {

/// Whether a text looks like a config.json or like the adapter_config.json of PEFT: a JSON object
/// with a key of these files, and unlike any other file that foreshard reads.
bool looks_like_hf_config(std::string_view text);

struct HfModel {
  Model model;
  /// Differences from the request or from the file, for the user.
  std::vector<std::string> remarks{};
};

/// A key that the file leaves out, or gives as null, has the default of its model type, as in the
/// configuration classes of Transformers; a size without value and default is an error. A window or
/// chunk that holds the whole sequence is dropped.
///
/// Not modelled, as no extent of the graph changes: scaling of rotary positions, of embeddings, of
/// residuals and of logits (Gemma, Granite, Cohere); soft caps; rotation of only a part of each
/// head (kernels copy the rest); activations other than GELU or SiLU with the same operands; how
/// experts are chosen and balanced beyond their scores (groups, biases, normalised weights);
/// modules that predict further tokens, which a remark names.
/// Source: huggingface/transformers: models/*/configuration_*.py and modeling_*.py; for models
/// outside of it, the files of the same names in their repositories.
/// \param sequence  length of a training sample in tokens, which the file does not give. Default:
///     the length of the table of positions if the model has one; else 2,048, or less if the file
///     states fewer positions ('max_position_embeddings', extended by 'rope_scaling').
/// \param extend  if the file states fewer positions than `sequence`: extend them, with a remark.
/// \return kInvalidInput for text that is not a JSON object, for a key that is missing or of the
///     wrong kind (the message names it), and for a sequence that the model has no positions for;
///     kUnsupported for another model type, for features that a decoder of the type does not have
///     (experts, state-space layers, encoders: the message names feature and key), another
///     activation, quantised weights, linear attention, and layers with windows in an order that
///     Model cannot express.
Result<HfModel> read_hf_config(std::string_view json_text, std::string name,
                               std::optional<std::int64_t> sequence, bool extend = false);

}  // namespace foreshard
