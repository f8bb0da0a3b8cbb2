// Any bytes: a model whose sizes are positive, or an error that says something.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/check.h"
#include "tests/fuzz/fuzzer.h"

#include "strategies/graph/hf_config.h"

FORESHARD_FUZZER(fuzz_hf_config) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  foreshard::yaml::Loader loader({.catalogue = {FORESHARD_SOURCE_DIR "/configs"}});
  const auto read = foreshard::read_hf_config(text, "m", std::nullopt, false, loader);
  if (!read) {
    FORESHARD_CHECK(!read.error().message.empty());
    return 0;
  }
  const foreshard::Model& model = read->model;
  FORESHARD_CHECK(model.layers > 0 && model.hidden > 0 && model.sequence > 0);
  return 0;
}
