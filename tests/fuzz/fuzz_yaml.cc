// Any bytes: an object whose echo reads back as the same, or an error with a place and short lines.
#include <cstddef>
#include <cstdint>
#include <sstream>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/yaml/describe.h"
#include "base/yaml/loader.h"
#include "tests/base/yaml/example.h"
#include "tests/fuzz/fuzzer.h"

FORESHARD_FUZZER(fuzz_yaml) {
  using namespace foreshard;
  using example::Cluster;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  // The text is a file, and a value given on the command line.
  yaml::Loader plain;
  const auto cluster = plain.read_text<Cluster>(text, "c.yaml");
  yaml::Loader overridden({.overrides = {{"nics", std::string(text)}}});
  (void)overridden.read_text<Cluster>("name: x", "c.yaml");
  if (!cluster) {
    const std::string& message = cluster.error().message;
    FORESHARD_CHECK(message.starts_with("c.yaml:"));
    FORESHARD_CHECK(message.size() < 20'000);
    return 0;
  }
  const std::string echo = yaml::echo(*cluster);
  const auto back = yaml::Loader().read_text<Cluster>(echo, "echo");
  FORESHARD_CHECK(back.has_value() && yaml::echo(*back) == echo);
  return 0;
}
