/// \file
/// What the fuzzers of launch files share: any bytes are refused with a message, or become lines
/// that are YAML of ours, in braces and as a block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/yaml/leaves.h"

#include "strategies/launch/launch.h"

namespace foreshard {

inline void check_lines(const std::vector<launch::Line>& lines) {
  const auto braces = yaml::leaves(launch::in_braces(lines), "braces");
  const auto block = yaml::leaves(launch::as_block(lines, 2), "block");
  FORESHARD_CHECK(braces.has_value() && block.has_value());
  FORESHARD_CHECK(braces->size() == block->size());
}

inline void fuzz_launch(const std::uint8_t* data, std::size_t size, const char* format) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto imported = launch::import_launch(
      {.text = text,
       .name = "in.txt",
       .format = format,
       .devices = 64,
       .settled = {{"strategy.micro_batch", "1"}, {"strategy.recompute", "none"}}});
  if (!imported) {
    FORESHARD_CHECK(!imported.error().message.empty());
    return;
  }
  check_lines(imported->strategy);
  if (!imported->model.empty()) check_lines(imported->model);
  FORESHARD_CHECK(!launch::report(*imported).empty());
}

}  // namespace foreshard
