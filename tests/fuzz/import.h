/// \file
/// What the fuzzers of importers share: any bytes are refused with a place, or become a file of
/// ours that reads back as the same and builds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/yaml/describe.h"

#include "topology/import/import.h"

namespace foreshard {

template <class T>
void check_round_trip(const T& object, const std::string& text, yaml::Loader& loader) {
  const auto back = loader.read_text<T>(text, "out.yaml");
  FORESHARD_CHECK(back.has_value());
  FORESHARD_CHECK(yaml::echo(*back) == yaml::echo(object));
}

inline void fuzz_import(const std::uint8_t* data, std::size_t size, const char* format,
                        const char* device, const char* node) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  yaml::Loader loader({.catalogue = {FORESHARD_SOURCE_DIR "/configs"}});
  const auto imported = import_topology(
      {.text = text, .name = "in.txt", .format = format, .device = device, .node = node}, loader);
  if (!imported) {
    const std::string& message = imported.error().message;
    FORESHARD_CHECK(message.starts_with("in.txt"));
    FORESHARD_CHECK(message.size() < 20'000);
    return;
  }
  const std::string yaml = to_yaml(*imported);
  if (const auto* host = std::get_if<NodeConfig>(&imported->what)) {
    check_round_trip(*host, yaml, loader);
  } else {
    check_round_trip(std::get<ClusterConfig>(imported->what), yaml, loader);
  }
}

}  // namespace foreshard
