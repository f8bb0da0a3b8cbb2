/// \file
/// A model from the `config.json` of a Hugging Face repository: the decoders and encoders of
/// Transformers whose types the catalogue has (configs/huggingface).
///
///     yaml::Loader loader({.catalogue = {"configs"}});
///     auto read = read_hf_config(R"({"model_type": "llama"})", "mine", 4096, false, loader);
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/yaml/loader.h"

#include "strategies/graph/hf_type.h"
#include "strategies/graph/model.h"

namespace foreshard {

/// Whether a text looks like such a file: a JSON object with a key that a config.json has, or the
/// adapter_config.json of PEFT, and no other file that foreshard reads.
bool looks_like_hf_config(std::string_view text);

struct HfModel {
  Model model;
  std::vector<std::string> remarks{};  ///< What is not as asked for or as stated, for people.
};

/// A key that the file leaves out, or gives as null, has the default of its model type, as in the
/// configuration classes of Transformers; a size that neither gives is an error.
///
/// Not modelled, as no extent of the graph changes: scaling of rotary positions, of embeddings, of
/// residuals and of logits (Gemma, Granite, Cohere), soft caps, a rotation of a part of each head
/// (kernels copy the rest), an activation other than GELU or SiLU of the same operands; how experts
/// are chosen and balanced beyond their scores (groups, biases, normalised weights); modules that
/// predict tokens behind the next, which a remark names. A window or chunk that holds the sequence
/// is none.
/// Source: huggingface/transformers: models/*/configuration_*.py and modeling_*.py; of models that
/// are not in it, the files of those names in their repositories.
/// \param sequence  the length of a training sample in tokens, which the file does not give.
///     Default: the length of the table of positions, where the model has one; else 2,048, or the
///     longest that the file states ('max_position_embeddings', or what 'rope_scaling' makes of
///     it).
/// \param loader  has the catalogue; of it the file of the model_type alone is read.
/// \param extend  positions reach to `sequence`, with a remark, where the file states fewer.
/// \return kInvalidInput for text that is not a JSON object, for a key that is missing or of
///     the wrong kind (the message names it), and for a sequence that the model has no positions
///     for; kUnsupported for another model type, for what a
///     decoder of that type has not (experts, state-space layers, encoders: the message names
///     feature and key), another activation, quantised weights, linear attention, and layers with
///     windows in another order than Model has.
Result<HfModel> read_hf_config(std::string_view json_text, std::string name,
                               std::optional<std::int64_t> sequence, bool extend,
                               yaml::Loader& loader);

/// The same with a type at hand, whatever the file's model_type.
Result<HfModel> read_hf_config(std::string_view json_text, std::string name,
                               std::optional<std::int64_t> sequence, bool extend,
                               const HfType& type);

}  // namespace foreshard
