// The rules about what may stand where, enforced on every source file: a file includes its own
// layer and those below it, third-party libraries stay behind their adapters, only the commands
// talk to the terminal, and no file grows beyond one idea. Adding a layer means editing kLayers in
// review.
#include <cctype>

#include "tests/test.h"

namespace foreshard {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string_view>;

constexpr std::size_t kMostLines = 600;

// Lowest first. A longer prefix wins over a shorter one.
constexpr auto kLayers = std::to_array<std::string_view>({
    "base/",
    "base/digest/",
    "base/gzip/",
    "base/net/",
    "base/perfetto/",
    "base/http/",
    "base/team/",
    "base/yaml/",
    "base/record/",
    "topology/",
    "topology/import/",
    "strategies/program/ir/",
    "strategies/schedule/",
    "strategies/graph/",
    "strategies/graph/onnx/",
    "strategies/parallelism/",
    "strategies/checkpoint/",
    "strategies/cost/",
    "strategies/comm/",
    "strategies/reshard/",
    "strategies/conversion/",
    "strategies/launch/",
    "strategies/plan/",
    "strategies/program/lower/",
    "sim/compute/",
    "sim/disturbance/",
    "sim/engine/",
    "sim/memory/",
    "sim/simulate/",
    "sim/study/",
    "sim/picture/",
    "sim/report/",
    "sim/page/",
    "sim/search/",
    "sim/search/graph/",
    "sim/advise/",
    "sim/sweep/",
    "sim/elastic/",
    "validate/measurement/",
    "validate/replay/",
    "validate/replay/host/",
    "validate/replay/gpu/",
    "validate/compare/",
    "validate/",
    "evidence/",
    "cli/",
    "library/",
    "python/",
});

// A line of a layer's file that contains `text` must be in a file whose path begins as one of
// `allowed`. An include is written without its quotes or brackets: "include yaml-cpp/".
struct Confined {
  std::string_view text;
  Names allowed;
  std::string_view why;
};

const std::vector<Confined>& confined() {
  static const std::vector<Confined> rules{
      {"include yaml-cpp/", {"base/yaml/"}, "YAML is read by base/yaml alone"},
      {"include onnx/",
       {"strategies/graph/onnx/internal/", "strategies/graph/onnx/read.cc",
        "tests/strategies/onnx/"},
       "ONNX files are read by strategies/graph/onnx alone"},
      {"include google/protobuf/",
       {"base/perfetto/", "strategies/graph/onnx/", "tests/base/perfetto/"},
       "protobuf stays behind ONNX and traces"},
      {"include coin/", {"sim/search/graph/integer.cc"}, "integer programs are solved by one file"},
      {"include ceres/", {"validate/calibrate/"}, "the solver stays behind the fit"},
      {"include simgrid/", {"sim/engine/simgrid_module.cc"}, "SimGrid stays behind its adapter"},
      {"include xbt/", {"sim/engine/simgrid_module.cc"}, "SimGrid stays behind its adapter"},
      {"include cuda", {"validate/replay/", "validate/calibrate/"}, "only the replay needs CUDA"},
      {"include cublas", {"validate/replay/", "validate/calibrate/"}, "only the replay needs CUDA"},
      {"include nccl", {"validate/replay/", "validate/calibrate/"}, "only the replay needs NCCL"},
      {"include mpi.h",
       {"validate/replay/host/mpi_wire.cc", "tests/validate/replay/host/"},
       "messages between ranks go over a Wire"},
      {"include cblas.h", {"validate/replay/host/"}, "only the host executor needs BLAS"},
      {"include boost/graph/", {"topology/"}, "the cluster's graph is topology's own matter"},
      {"include sqlite3",
       {"sim/sweep/internal/database.cc", "tests/sim/sweep/"},
       "the results file is SQLite in one file alone"},
      {"include expat", {"topology/import/xml.cc"}, "XML is read by one file"},
      {"include httplib", {"base/http/server.cc"}, "HTTP is spoken by one file"},
      {"include zlib", {"base/gzip/"}, "gzip is read by one file"},
      {"include toml++/", {"strategies/launch/settings_toml.cc"}, "TOML is read by one file"},
      {"include CLI/", {"cli/"}, "command lines are read by the commands"},
      {"include pybind11", {"python/"}, "Python is spoken by its module"},
      {"zero_stage",
       {"strategies/parallelism/strategy.", "strategies/parallelism/strategy_faults.",
        "strategies/parallelism/expert_faults.", "strategies/parallelism/memory_saver_faults.",
        "strategies/parallelism/state_sharding.", "strategies/launch/", "sim/search/space.",
        "sim/search/space_keys.", "sim/search/internal/strategy_keys.", "sim/advise/internal/",
        "sim/report/", "sim/study/", "validate/", "evidence/", "cli/", "tests/",
        "base/other_names."},
       "StateSharding says what is cut, gathered and reduced"},
      {"std::cout", {"cli/", "validate/replay/"}, "results are values; the commands print them"},
      {"std::cerr", {"cli/", "validate/replay/", "base/check."}, "messages are values"},
      {"std::exit(", {"cli/", "validate/replay/"}, "only main ends the program"},
  };
  return rules;
}

// Layers that must stand on fewer than all below them.
struct Alone {
  std::string_view layer;
  Names allowed;
};

const std::vector<Alone>& alone() {
  static const std::vector<Alone> rules{
      // The replayer is built on a cluster from these folders.
      {"strategies/program/ir/", {"base/", "strategies/program/ir/"}},
      {"validate/measurement/", {"base/", "strategies/program/ir/", "validate/measurement/"}},
      {"validate/replay/",
       {"base/", "strategies/program/ir/", "validate/measurement/", "validate/replay/"}},
  };
  return rules;
}

bool begins_as_any(std::string_view text, const Names& prefixes) {
  return std::any_of(prefixes.begin(), prefixes.end(),
                     [&](std::string_view prefix) { return text.starts_with(prefix); });
}

std::optional<std::size_t> layer_of(std::string_view path) {
  std::optional<std::size_t> best;
  for (std::size_t i = 0; i < kLayers.size(); ++i)
    if (path.starts_with(kLayers[i]) && (!best || kLayers[i].size() > kLayers[*best].size()))
      best = i;
  return best;
}

// What the line includes, without quotes or brackets; empty if it is no include.
std::string_view included_by(std::string_view line) {
  constexpr std::string_view kWord = "include";
  const auto skip_blanks = [&] {
    while (!line.empty() && std::isspace(static_cast<unsigned char>(line.front())) != 0)
      line.remove_prefix(1);
  };
  skip_blanks();
  if (!line.starts_with('#')) return {};
  line.remove_prefix(1);
  skip_blanks();
  if (!line.starts_with(kWord)) return {};
  line.remove_prefix(kWord.size());
  skip_blanks();
  const auto end = line.find_first_of("\">", 1);
  return end == std::string_view::npos ? std::string_view{} : line.substr(1, end - 1);
}

// Whether the file belongs to the module, or tests something of the same top folder.
bool may_see(std::string_view file, std::string_view module) {
  constexpr std::string_view kTests = "tests/";
  if (!file.starts_with(kTests) || module.starts_with(kTests)) return file.starts_with(module);
  return file.substr(kTests.size()).starts_with(module.substr(0, module.find('/')));
}

void check_include(std::string_view file, std::string_view target,
                   std::vector<std::string>& faults) {
  const auto fault = [&](const std::string& why) {
    faults.push_back(std::string(file) + " includes " + std::string(target) + ", " + why);
  };
  const auto internal = target.find("/internal/");
  if (internal != std::string_view::npos && !may_see(file, target.substr(0, internal)))
    fault("private to another module");
  if (target.starts_with("boost/graph/") && file.ends_with(".h") &&
      file.find("/internal/") == std::string_view::npos)
    fault("in a public header");

  if (file.starts_with("library/foreshard/") &&
      target.find_first_of("/.") != std::string_view::npos)
    fault("though those who include it may have the standard library alone");

  const auto from = layer_of(file);
  const auto to = layer_of(target);
  if (!from || !to) return;
  if (*to > *from) fault("a layer above it");
  for (const Alone& rule : alone())
    if (file.starts_with(rule.layer) && !begins_as_any(target, rule.allowed))
      fault("though " + std::string(rule.layer) + " stands alone");
}

std::vector<std::string> faults_in(std::string_view file, const std::string& text) {
  std::vector<std::string> faults;
  const bool product = layer_of(file).has_value();
  if (!product && !file.starts_with("tests/") && !file.starts_with("bench/"))
    faults.push_back(std::string(file) + " is in no layer: add its folder to kLayers");

  std::istringstream lines(text);
  std::size_t count = 0;
  for (std::string line; std::getline(lines, line); ++count) {
    const std::string_view target = included_by(line);
    if (!target.empty()) {
      check_include(file, target, faults);
      line = "include " + std::string(target);
    }
    if (!product) continue;
    for (const Confined& rule : confined())
      if (line.find(rule.text) != std::string::npos && !begins_as_any(file, rule.allowed))
        faults.push_back(std::string(file) + ":" + std::to_string(count + 1) + " has `" +
                         std::string(rule.text) + "`: " + std::string(rule.why));
  }
  if (count > kMostLines)
    faults.push_back(std::string(file) + " has " + std::to_string(count) + " lines, more than " +
                     std::to_string(kMostLines) + ": it holds more than one idea");
  if (file.ends_with(".h") && text.find("\n#pragma once\n") == std::string::npos &&
      !text.starts_with("#pragma once\n"))
    faults.push_back(std::string(file) + " lacks #pragma once");
  return faults;
}

TEST(Layering, EveryFileKeepsTheRules) {
  const fs::path root = FORESHARD_SOURCE_DIR;
  std::size_t files = 0;
  for (const char* folder : {"base", "topology", "strategies", "sim", "library", "validate",
                             "evidence", "cli", "python", "tests", "bench"}) {
    if (!fs::exists(root / folder)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(root / folder)) {
      const auto kind = entry.path().extension();
      if (!entry.is_regular_file() ||
          (kind != ".h" && kind != ".cc" && kind != ".cu" && kind != ".cuh"))
        continue;
      std::ostringstream text;
      text << std::ifstream(entry.path()).rdbuf();
      EXPECT_THAT(faults_in(fs::relative(entry.path(), root).generic_string(), text.str()),
                  IsEmpty());
      ++files;
    }
  }
  EXPECT_GT(files, 10U) << "is FORESHARD_SOURCE_DIR right?";
}

// The checker itself: one row for each rule, with a file that breaks it.
struct Breach {
  std::string_view file;
  std::string text;
  std::string_view message;
};

TEST(LayeringChecker, CatchesEachKindOfBreach) {
  const std::vector<Breach> breaches{
      {"base/x.cc", "#include \"topology/x.h\"\n", "a layer above it"},
      {"topology/x.cc", "  #  include  \"strategies/comm/x.h\"\n", "a layer above it"},
      {"strategies/comm/x.cc", "#include \"sim/engine/x.h\"\n", "a layer above it"},
      {"sim/report/x.cc", "#include \"validate/x.h\"\n", "a layer above it"},
      {"strategies/program/ir/x.cc", "#include \"topology/x.h\"\n", "stands alone"},
      {"sim/engine/x.cc", "#include \"topology/internal/x.h\"\n", "private to another module"},
      {"tests/sim/x.cc", "#include \"topology/internal/x.h\"\n", "private to another module"},
      {"topology/x.cc", "#include <yaml-cpp/yaml.h>\n", "topology/x.cc:1 has `include yaml-cpp/`"},
      {"sim/engine/fluid.cc", "\n#include <simgrid/s4u.hpp>\n", "SimGrid stays behind"},
      {"sim/engine/fluid.cc", "#include <xbt/log.h>\n", "SimGrid stays behind"},
      {"sim/compute/x.cc", "#include <cuda_runtime.h>\n", "only the replay needs CUDA"},
      {"sim/compute/x.cc", "#include <cublasLt.h>\n", "only the replay needs CUDA"},
      {"cli/x.cc", "#include <nccl.h>\n", "only the replay needs NCCL"},
      {"sim/engine/x.cc", "#include <boost/graph/dijkstra_shortest_paths.hpp>\n", "own matter"},
      {"topology/x.h", "#pragma once\n#include <boost/graph/dag.hpp>\n", "in a public header"},
      {"sim/report/x.cc", "#include <CLI/CLI.hpp>\n", "read by the commands"},
      {"library/x.cc", "#include <pybind11/pybind11.h>\n", "Python is spoken by its module"},
      {"sim/report/x.cc", "  std::cout << 1;\n", "the commands print them"},
      {"topology/x.cc", "  std::cerr << 1;\n", "messages are values"},
      {"topology/x.cc", "  std::exit(2);\n", "only main ends the program"},
      {"library/foreshard/x.h", "#pragma once\n#include <fmt/format.h>\n",
       "standard library alone"},
      {"library/foreshard/x.h", "#pragma once\n#include \"base/x.h\"\n", "standard library alone"},
      {"sim/report/x.cc", "#include \"library/foreshard/x.h\"\n", "a layer above it"},
      {"strategies/x.cc", "\n", "in no layer"},
      {"topology/x.h", "int x();\n", "lacks #pragma once"},
      {"tests/x_test.cc", std::string(kMostLines + 1, '\n'), "more than one idea"},
  };
  for (const Breach& breach : breaches)
    EXPECT_THAT(faults_in(breach.file, breach.text),
                ElementsAre(HasSubstr(std::string(breach.message))))
        << breach.file << ": " << breach.text;
}

TEST(LayeringChecker, AllowsWhatTheRulesAllow) {
  const std::vector<Breach> allowed{
      {"sim/engine/x.cc", "#include <vector>\n#include \"topology/x.h\"\n", {}},
      {"sim/engine/simgrid_module.cc", "#include <simgrid/s4u.hpp>\n", {}},
      {"base/yaml/reader.cc", "#include <yaml-cpp/yaml.h>\n", {}},
      {"topology/internal/graph.h", "#pragma once\n#include <boost/graph/dag.hpp>\n", {}},
      {"topology/x.cc", "#include \"topology/internal/x.h\"\n", {}},
      {"library/foreshard/x.h", "#pragma once\n#include <vector>\n", {}},
      {"cli/main.cc", "std::cout << 1; std::exit(2);\n", {}},
      {"tests/topology/x_test.cc", "std::cout << 1;\n", {}},
      {"tests/topology/x_test.cc", "#include \"topology/internal/x.h\"\n", {}},
      {"topology/x.cc", std::string(kMostLines, '\n'), {}},
  };
  for (const Breach& file : allowed)
    EXPECT_THAT(faults_in(file.file, file.text), IsEmpty()) << file.file;
}

}  // namespace
}  // namespace foreshard
