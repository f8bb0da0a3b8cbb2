// Any bytes as the index of a Hugging Face checkpoint of two files: refused with the name of a
// file, or all tensors are where it says.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>

#include "base/check.h"
#include "tests/fuzz/fuzzer.h"
#include "tests/fuzz/mutate.h"
#include "tests/fuzz/words.h"

#include "strategies/checkpoint/source.h"

FORESHARD_MUTATES_JSON;

namespace foreshard::fuzz::hf_index_test {

void write(const std::filesystem::path& file, std::string_view bytes) {
  std::ofstream(file, std::ios::binary) << bytes;
}

// A tensor of two values in each of two files.
const std::filesystem::path& shards() {
  static const std::filesystem::path folder = [] {
    auto path = foreshard::fuzz::Folder::path() / "hf";
    std::filesystem::create_directories(path);
    for (const std::string name : {"a", "b"}) {
      const std::string header =
          "{\"" + name + "\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[0,4]}}";
      std::string file(8, '\0');  // the length of the header, then the header, then the data
      file[0] = static_cast<char>(header.size());
      file += header;
      file += "1234";
      write(path / (name + ".safetensors"), file);
    }
    return path;
  }();
  return folder;
}

}  // namespace foreshard::fuzz::hf_index_test

FORESHARD_FUZZER(fuzz_hf_index) {
  using namespace foreshard;
  using namespace foreshard::fuzz::hf_index_test;
  using namespace foreshard::checkpoint;
  write(shards() / "model.safetensors.index.json", {reinterpret_cast<const char*>(data), size});
  const auto source = open_source(shards());
  if (!source) {
    FORESHARD_CHECK(source.error().message.find(shards().string()) != std::string::npos);
    return 0;
  }
  FORESHARD_CHECK(std::ranges::all_of(source->tensors, [](const SourceTensor& tensor) {
    return tensor.locations.size() == 1 && tensor.locations[0].file >= 0;
  }));
  return 0;
}
