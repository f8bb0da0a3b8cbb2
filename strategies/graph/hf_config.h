/// \file
/// A model from the `config.json` of a Hugging Face repository: model types llama, mistral, qwen2
/// and gpt2.
///
///     auto model = read_hf_config(R"({"model_type": "llama"})", "mine", 4096);
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

#include "strategies/graph/model.h"

namespace foreshard {

/// A key that the file leaves out, or gives as null, has the default of its model type, as in the
/// configuration classes of Transformers; a size that neither gives is an error.
///
/// Not modelled: scaling of rotary positions, which changes no extent of the graph.
/// Source: huggingface/transformers: models/{llama,mistral,qwen2,gpt2}/configuration_*.py.
/// \param sequence  the length of a training sample in tokens, which the file does not give.
///     Default: the length of the table of positions (gpt2), 2,048 for the other types.
/// \return kInvalidInput for text that is not a JSON object, and for a key that is missing or of
///     the wrong kind (the message names it); kUnsupported for another model type, experts, another
///     activation, quantised weights, cross-attention, and layers whose attention does not cover
///     the whole sequence (a sliding window or chunk shorter than it, linear attention).
Result<Model> read_hf_config(std::string_view json_text, std::string name,
                             std::optional<std::int64_t> sequence);

}  // namespace foreshard
