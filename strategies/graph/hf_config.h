/// \file
/// A model from the `config.json` of a Hugging Face repository: model types llama, mistral, qwen2
/// and gpt2.
///
///     auto model = read_hf_config(R"({"model_type": "llama", "hidden_size": 4096})", "mine",
///     4096);
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

#include "strategies/graph/model.h"

namespace foreshard {

/// A key that the file leaves out, or gives as null, has the default of its model type, as in the
/// configuration classes of Transformers; a size that neither has is an error. `sequence` is the
/// length of a training sample, which the file does not know.
///
/// Not modelled: a sliding attention window, scaling of rotary positions, quantisation; they change
/// no extent of the graph.
/// Source: huggingface/transformers: models/{llama,mistral,qwen2,gpt2}/configuration_*.py.
/// \return kInvalidInput for text that is no JSON object, and for a key that is missing or of the
///     wrong kind (the message names it); kUnsupported for another model type, experts, or another
///     activation.
Result<Model> read_hf_config(std::string_view json_text, std::string name, std::int64_t sequence);

}  // namespace foreshard
