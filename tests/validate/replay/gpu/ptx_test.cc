// What nvcc makes of the kernels, where their speed hangs on it: instructions of the PTX, counted.
#include <regex>

#include "tests/base/temporary_folder.h"
#include "tests/test.h"

#ifndef FORESHARD_NVCC
#define FORESHARD_NVCC ""
#endif

namespace foreshard::replay::gpu {
namespace {

// PTX of each kernel of a source, by mangled name.
std::map<std::string, std::string> kernels_of(const std::string& source) {
  const TemporaryFolder folder;
  const std::string ptx = (folder.path() / "kernels.ptx").string();
  const std::string line =
      FORESHARD_NVCC
      " -ptx -O3 -std=c++20 -arch=compute_90 --expt-relaxed-constexpr -I " FORESHARD_SOURCE_DIR
      " -o " +
      ptx + " " FORESHARD_SOURCE_DIR "/validate/replay/gpu/" + source;
  EXPECT_EQ(std::system(line.c_str()), 0) << line;
  std::map<std::string, std::string> kernels;
  std::ifstream file(ptx);
  std::string text, name;
  const std::regex entry(R"(\.entry (\w+)\()");
  while (std::getline(file, text)) {
    if (std::smatch found; std::regex_search(text, found, entry)) name = found[1];
    if (!name.empty()) kernels[name] += text + "\n";
  }
  return kernels;
}

std::ptrdiff_t count(const std::string& text, const std::string& instruction) {
  const std::regex pattern("\\b" + instruction);
  return std::distance(std::sregex_iterator(text.begin(), text.end(), pattern),
                       std::sregex_iterator());
}

// A warp that reads 4 bytes of each pack of 8 columns would meet in every bank 8 times.
TEST(Ptx, NormBackwardReadsSharedMemoryInQuads) {
  if (std::string(FORESHARD_NVCC).empty()) GTEST_SKIP() << "no nvcc: this build is without CUDA";
  int packs = 0;
  for (const auto& [name, text] : kernels_of("pass_columns.cu")) {
    if (name.find("norm_backward") == std::string::npos) continue;
    if (name.find("Li8E") == std::string::npos) continue;  // rows that are no packs
    ++packs;
    // A sum of the row's block (2 quads) at least, the quads of a pack, and those handed over.
    EXPECT_GE(count(text, R"(ld\.shared\.v4\.)"), 5) << name;
    EXPECT_EQ(count(text, R"(ld\.shared\.(?!v4))"), 0) << name;
    EXPECT_EQ(count(text, R"(ld\.(v4\.)?[bfu]\d)"), 0) << name << ": of no known memory";
    // A pack of fp8 is 8 bytes, which are one access, too.
    EXPECT_EQ(count(text, R"(st\.global\.(?!v4))"), 0) << name;
    EXPECT_GE(count(text, R"((red|atom)\.global\.add\.f32)"), 4) << name;
  }
  EXPECT_EQ(packs, 8);  // 4 types, with and without a mean
}

}  // namespace
}  // namespace foreshard::replay::gpu
