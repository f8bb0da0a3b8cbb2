// The replay bundle, written by this program, builds where only cmake and a compiler are: no header
// of another package is read, and what comes out is foreshard-replay.
#include "validate/replay/bundle/bundle.h"

#include <sys/wait.h>

#include "tests/base/temporary_folder.h"
#include "tests/changed.h"
#include "tests/test.h"

namespace foreshard::replay::bundle_test {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

struct Outcome {
  int code = -1;
  std::string output{};
};
// With the few variables that a bare machine has; make may be missing.
Outcome run(const std::string& command, const fs::path& log) {
  const std::string line = "env -i PATH=/usr/bin:/bin HOME=/tmp CMAKE_GENERATOR=Ninja sh -c '" +
                           command + "' >" + log.string() + " 2>&1 </dev/null";
  const int status = std::system(line.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, text_of(log)};
}

// Whether a file has changed that the bundle holds, where the source tree has it too, or what makes
// it.
bool bundle_has_changed() {
  std::vector<std::string_view> held{"validate/replay/bundle/"};
  for (const BundleFile& file : bundle_files()) held.emplace_back(file.path);
  return has_changed(held);
}

class Bundle : public testing::Test {
 protected:
  void build(const std::string& options) {
    EXPECT_EQ(value_of(write_bundle(folder_.path() / "bundle")), bundle_files().size());
    const std::string in = "cd " + (folder_.path() / "bundle").string() + " && ";
    const auto configured = run(in + "cmake -B build " + options, log_);
    ASSERT_EQ(configured.code, 0) << configured.output;
    const auto built = run(in + "cmake --build build -j 2", log_);
    ASSERT_EQ(built.code, 0) << built.output;
  }
  // The headers that were read, as the compilers noted them.
  std::string headers() const {
    return run("ninja -C " + (folder_.path() / "bundle" / "build").string() + " -t deps", log_)
        .output;
  }
  Outcome replay(const std::string& arguments) const {
    return run((folder_.path() / "bundle/build/bin/foreshard-replay").string() + " " + arguments,
               log_);
  }
  TemporaryFolder folder_;
  fs::path log_ = folder_.path() / "log";
};

// Not optimised, for time: BuildsWithCudaWhereItIs is.
TEST_F(Bundle, BuildsWithACompilerAlone) {
  if (!bundle_has_changed()) GTEST_SKIP() << "nothing that the bundle holds has changed";
  build("-DFORESHARD_CUDA=OFF -DFORESHARD_MPI=OFF -DCMAKE_CXX_FLAGS_RELEASE=-O0");
  const std::string read = headers();
  EXPECT_THAT(read, HasSubstr("third_party/nlohmann/json.hpp"));
  for (const char* other : {"/fmt/", "/yaml-cpp/", "/boost/", "/CLI/", "/openssl/", "/simgrid/",
                            "/ceres/", "include/nlohmann/", "/cuda"})
    EXPECT_THAT(read, Not(HasSubstr(other)));

  const Outcome help = replay("--help");
  EXPECT_EQ(help.code, 0);
  EXPECT_THAT(help.output, HasSubstr("foreshard-replay PROGRAM.json"));
  std::ofstream(folder_.path() / "later.json") << R"({"schema":"foreshard.program/2"})";
  const Outcome later = replay((folder_.path() / "later.json").string() + " --check");
  EXPECT_EQ(later.code, 2);
  EXPECT_THAT(later.output, HasSubstr("foreshard.program/2"));
  const Outcome gpu = replay(std::string(FORESHARD_SOURCE_DIR) +
                             "/configs/measurements/h200-plan/gpt-1.3b-h200.json -o /dev/null");
  EXPECT_EQ(gpu.code, 2);
  EXPECT_THAT(gpu.output, HasSubstr("built without CUDA"));
}

// One architecture, for time. Launches no GPU work where there is none, and says so. What the
// bundle holds outside the replay is the same without CUDA.
TEST_F(Bundle, BuildsWithCudaWhereItIs) {
#ifdef FORESHARD_NVCC
  if (!has_changed({"validate/replay/", "cmake/ForeshardCuda.cmake"}))
    GTEST_SKIP() << "nothing that CUDA compiles has changed";
  build(
      "-DFORESHARD_CUDA=ON -DFORESHARD_MPI=OFF -DCMAKE_CUDA_ARCHITECTURES=90 "
      "-DCMAKE_CXX_FLAGS_RELEASE=-O0 -DCMAKE_CUDA_FLAGS_RELEASE=\"-O0 -Xcicc -O0 -Xptxas -O0\" "
      "-DCMAKE_CUDA_COMPILER=" FORESHARD_NVCC " -DNCCL_INCLUDE_DIR=" FORESHARD_NCCL_INCLUDE);
  EXPECT_EQ(replay("--help").code, 0);
  const Outcome gpu = replay(std::string(FORESHARD_SOURCE_DIR) +
                             "/configs/measurements/h200-plan/gpt-1.3b-h200.json -o " +
                             (folder_.path() / "measured.json").string());
  if (gpu.code == 0) GTEST_SKIP() << "there is a GPU: it replayed the step";
  EXPECT_EQ(gpu.code, 2);
  EXPECT_THAT(gpu.output, HasSubstr("no GPU: cudaGetDeviceCount says"));
#else
  GTEST_SKIP() << "no CUDA compiler";
#endif
}

}  // namespace foreshard::replay::bundle_test
