/// \file
/// What tests of launch files share.
#pragma once

#include "tests/test.h"

#include "strategies/launch/launch.h"

namespace foreshard::launch {

using Settled = std::map<std::string, std::string>;

inline std::string launch_file(const std::string& name) {
  std::ostringstream text;
  text << std::ifstream(FORESHARD_SOURCE_DIR "/tests/strategies/launch/data/" + name).rdbuf();
  return text.str();
}

inline Result<Imported> import_text(const std::string& text,
                                    std::optional<std::int64_t> devices = {},
                                    const Settled& settled = {}, const std::string& format = {}) {
  return import_launch(
      {.text = text, .name = "run", .format = format, .devices = devices, .settled = settled});
}

/// The strategy in braces, or the message of the fault.
inline std::string strategy_of(const std::string& text, std::optional<std::int64_t> devices = {},
                               const Settled& settled = {}, const std::string& format = {}) {
  const auto imported = import_text(text, devices, settled, format);
  return imported ? in_braces(imported->strategy) : imported.error().message;
}

template <class T>
T loaded(const std::vector<Line>& lines) {
  yaml::Loader loader(shipped_options());
  return value_of(loader.read_text<T>(in_braces(lines), "imported"), in_braces(lines));
}

}  // namespace foreshard::launch
