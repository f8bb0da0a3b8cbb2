// A key that changes nothing misleads: whoever sets it believes in an effect. Every value that a
// shipped file writes is set to another one that is legal there, and some result must follow: a
// prediction, a Program, a time of a collective, a finding. Where every other value is refused, the
// message is the result.

#include "base/file.h"
#include "tests/base/yaml/written_keys.h"
#include "tests/changed.h"
#include "tests/configs/probes.h"
#include "tests/test.h"

namespace foreshard {
namespace {

namespace fs = std::filesystem;

const fs::path kConfigs = FORESHARD_SOURCE_DIR "/configs";

// Keys that are for people, whatever the file: they say where a number comes from, how sure it is,
// what a thing is called, what a file is for. (`evidence` widens intervals: interval_test.)
constexpr std::array<std::string_view, 6> kForPeople{"source", "evidence",    "summary",
                                                     "doc",    "description", "reason"};

// Keys that change nothing, by kind, file (empty: all) and end of the path, and why.
struct Exception {
  std::string_view kind;
  std::string_view file;
  std::string_view path;
  std::string_view why;
};
constexpr std::array kExceptions = std::to_array<Exception>({
    {"efficiency", "", "measured_on", "decides how sure the numbers are (evidence)"},
    {"efficiency", "", "own_kernels", "which measurements `calibrate` takes"},
    {"efficiency", "", "fit.rows", "how many rows `calibrate` fitted: for people"},
    {"efficiency", "", "fit.median_error", "how well they were met: for people"},
    {"efficiency", "", "fit.p90_error", "how well they were met: for people"},
    {"efficiency", "host-core", "gemm.split_overhead", "its products are not split: splits is [1]"},
    {"efficiency", "host-core", "gemm.split_traffic", "its products are not split: splits is [1]"},
    {"efficiency", "host-core", "gemm.smallest_part", "its products are not split: splits is [1]"},
    {"efficiency", "host-core", "attention.rates.head_dim", "every size has the same rate"},
    {"efficiency", "host-socket", "gemm.split_overhead",
     "its products are not split: splits is [1]"},
    {"efficiency", "host-socket", "gemm.split_traffic",
     "its products are not split: splits is [1]"},
    {"efficiency", "host-socket", "gemm.smallest_part",
     "its products are not split: splits is [1]"},
    {"efficiency", "host-socket", "attention.rates.head_dim", "every size has the same rate"},
    {"efficiency", "Blackwell", "attention_of.flash-2.rates.head_dim", "one rate for every size"},
    {"elastic", "", "search.certify", "what is simulated more may be slower than what was"},
    {"elastic", "", "search.simulate", "likewise"},
    {"intervals", "", "measurements", "how many measurements a range rests on: for people"},
    {"study", "gpt-39.1b-h100-32", "fabric.levels", "one pod: no level above its leaves is used"},
    {"study", "llama2-70b-h100-128", "fabric.levels", "one pod: no level above is used"},
    {"study", "llama3-8b-h100-64-fsdp", "fabric.levels", "one pod: no level above is used"},
    {"study", "llama3-70b-h100-64-forward", "fabric.levels", "no rank sends to another node"},
    {"study", "mixtral-8x22b-h100-128", "fabric.levels", "one pod: no level above is used"},
    {"study", "llama3-70b-h100-64-forward", "nodes_per_pod", "no rank sends to another node"},
    {"study", "click-through-hosts-h100-8", "annotations.dims",
     "what is whole, \"-\", could lie along data alone, which another dimension has"},
    {"communication", "nccl", "forms.8.largest_message", "LL is slower than Simple at every size"},
    {"communication", "nccl", "forms.41.architectures.0",
     "PAT of any other is the same but less sure"},
    {"tuner", "", "generations.name", "which devices a row is for: for people"},
    {"graph", "", "bodies.0.name", "stands in faults and remarks alone"},
    {"hardware", "", "sockets.6.arch", "of arm64: the row below, for all, has the same rate"},
});

std::string last_part(const std::string& path) {
  const std::string key = general(path);
  return key.substr(key.rfind('.') + 1);
}

bool is_for_people(const std::string& path) {
  return std::ranges::find(kForPeople, last_part(path)) != kForPeople.end();
}

std::vector<fs::path> files_of(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(kConfigs / folder))
    if (entry.path().extension() == ".yaml") files.push_back(entry.path());
  std::ranges::sort(files);
  return files;
}

std::vector<WrittenKey> keys_of(const fs::path& file) {
  return written_keys(value_of(read_file(file, 4_MiB)));
}

// Words of all files of the folder, and the names of the catalogue, but those of model types, which
// no key refers to.
WordPool pool_of(const std::vector<fs::path>& files) {
  WordPool pool;
  for (const fs::path& file : files)
    for (const WrittenKey& key : keys_of(file)) pool[general(key.path)].insert(key.text);
  for (const auto& entry : fs::recursive_directory_iterator(kConfigs))
    if (entry.path().extension() == ".yaml" &&
        entry.path().parent_path() != kConfigs / "huggingface")
      pool[""].insert(entry.path().stem().string());
  for (const char* word :
       {"bf16",     "fp16",   "fp32",    "none",   "full",     "overlapped", "after-backward",
        "blocking", "ring",   "tree",    "LL",     "Simple",   "layer-norm", "rms-norm",
        "gelu",     "swiglu", "learned", "rotary", "adaptive", "spread",     "nccl",
        "fastest",  "switch", "mesh",    "nvlink", "pcie",     "0x9999",     "data",
        "tensor",   "add",    "sub",     "relu",   "input",    "activation"})
    pool[""].insert(word);
  return pool;
}

// The code that reads the files of a kind and uses what it read, as beginnings of paths. Any code
// of the model, where the kind is not named here.
const std::map<std::string_view, std::vector<std::string_view>> kCode{
    {"exclusions", {"validate/tables/"}},    {"table", {"evidence/"}},
    {"kernel_table", {"validate/tables/"}},  {"hardware", {"topology/"}},
    {"kernel_names", {"validate/profile/"}}, {"model_type", {"strategies/graph/"}},
    {"tuner", {"strategies/comm/"}},
};
const std::vector<std::string_view> kModel{"base/", "topology/", "strategies/", "sim/"};
// The keys of a file that are for results and may have died since the last commit that CI passed:
// any of them, where the file has changed; where only code has, one in five shows whether that did
// harm.
std::vector<WrittenKey> keys_to_try(const std::string& kind, const fs::path& file) {
  const auto known = kCode.find(kind);
  auto code = known == kCode.end() ? kModel : known->second;
  code.insert(code.end(), {"base/yaml/", "tests/base/yaml/", "tests/configs/"});
  const std::string name = "configs/" + fs::relative(file, kConfigs).generic_string();
  const Cases cases = cases_to_run({name}, code);
  std::vector<WrittenKey> keys;
  for (WrittenKey& key : keys_of(file))
    if (!is_for_people(key.path) && key.path != "extends" &&
        (cases == Cases::kAll || (cases == Cases::kSample && is_in_sample(name + key.path))))
      keys.push_back(std::move(key));
  return keys;
}

// Collects the keys that changed nothing, and expects none but the exceptions.
class Dead {
 public:
  explicit Dead(std::string kind) : kind_(std::move(kind)) {}
  bool is_known(const fs::path& file, const WrittenKey& key) const {
    const std::string path = general(key.path);
    return std::ranges::any_of(kExceptions, [&](const Exception& each) {
      return each.kind == kind_ && (path.ends_with(each.path) || key.path.ends_with(each.path)) &&
             (each.file.empty() || each.file == file.stem().string());
    });
  }
  void add(const fs::path& file, const WrittenKey& key) {
    if (is_known(file, key)) return;
    ADD_FAILURE() << kind_ << " " << file.filename().string() << ": " << key.path << ": "
                  << key.text << " changes nothing";
  }

 private:
  std::string kind_;
};

// How many legal values of a key are tried before it counts as dead.
constexpr int kMostTries = 8;

// Whether some other value of the key is a result of its own. `changed` says of a value: whether
// the result is another, or nothing where the value is refused.
template <class Changed>
bool lives(const WrittenKey& key, const WordPool& pool, const Changed& changed) {
  int accepted = 0;
  for (const std::string& value : other_values(key, pool)) {
    const std::optional<bool> result = changed(value);
    if (!result) continue;
    if (*result) return true;
    if (++accepted == kMostTries) return false;
  }
  return accepted == 0;
}

template <class T>
std::optional<T> read(const fs::path& file, std::vector<yaml::Override> overrides) {
  yaml::Loader loader({.catalogue = {kConfigs}, .overrides = std::move(overrides)});
  auto object = loader.read_file<T>(file);
  return object ? std::optional(*std::move(object)) : std::nullopt;
}

// Whether a study would take what was read.
template <class T>
bool is_sound(const T&) {
  return true;
}
bool is_sound(const Model& model) {
  return checked(model).has_value();
}

template <class T>
void expect_no_dead_keys(const std::string& kind, const fs::path& folder) {
  Dead dead(kind);
  std::size_t tried = 0;
  const auto files = files_of(folder);
  const WordPool pool = pool_of(files);
  for (const fs::path& file : files) {
    const auto probes = probes_of(static_cast<const T*>(nullptr), file.stem().string());
    const auto shipped = read<T>(file, {});
    ASSERT_TRUE(shipped) << file;
    std::vector<std::optional<std::string>> before(probes.size());
    // A probe that saw the last key is likely to see the next one.
    std::vector<std::size_t> order(probes.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (const WrittenKey& key : keys_to_try(kind, file)) {
      if (key.path == "name") continue;
      ++tried;
      if (dead.is_known(file, key)) continue;  // trying all its values may take minutes
      const bool alive = lives(key, pool, [&](const std::string& value) -> std::optional<bool> {
        const auto object = read<T>(file, {{key.path, value}});
        if (!object || !is_sound(*object)) return std::nullopt;
        for (auto place = order.begin(); place != order.end(); ++place) {
          const std::size_t i = *place;
          if (!before[i]) before[i] = probes[i](*shipped);
          if (probes[i](*object) == *before[i]) continue;
          std::rotate(order.begin(), place, place + 1);
          return true;
        }
        return false;
      });
      if (!alive) dead.add(file, key);
    }
  }
  if (tried == 0) GTEST_SKIP() << "nothing that " << kind << " needs has changed";
}

struct Kind {
  const char* name;
  void (*check)(const std::string& kind, const fs::path& folder);
  const char* kind;
  const char* folder;
};
class EveryKeyOf : public testing::TestWithParam<Kind> {};
TEST_P(EveryKeyOf, ChangesSomething) {
  GetParam().check(GetParam().kind, GetParam().folder);
}
INSTANTIATE_TEST_SUITE_P(
    Kinds, EveryKeyOf,
    testing::Values(
        Kind{"OfDevices", expect_no_dead_keys<DeviceType>, "device", "devices"},
        Kind{"OfEfficiencies", expect_no_dead_keys<DeviceEfficiency>, "efficiency",
             "devices/efficiency"},
        Kind{"OfDraws", expect_no_dead_keys<DeviceDraw>, "draw", "devices/draw"},
        Kind{"OfNodes", expect_no_dead_keys<NodeConfig>, "node", "nodes"},
        Kind{"OfUsualNodes", expect_no_dead_keys<NodeConfig>, "node", "nodes/by-device"},
        Kind{"OfClusters", expect_no_dead_keys<ClusterConfig>, "cluster", "clusters"},
        Kind{"OfTransports", expect_no_dead_keys<Transport>, "transport", "transports"},
        Kind{"OfCommunication", expect_no_dead_keys<comm::Parameters>, "communication",
             "communication"},
        Kind{"OfTuners", expect_no_dead_keys<comm::nccl::Tables>, "tuner", "tuners"},
        Kind{"OfModels", expect_no_dead_keys<Model>, "model", "models"},
        Kind{"OfModelTypes", expect_no_dead_keys<HfType>, "model_type", "huggingface"},
        Kind{"OfStrategies", expect_no_dead_keys<Strategy>, "strategy", "strategies"},
        Kind{"OfFrameworks", expect_no_dead_keys<Framework>, "framework", "frameworks"},
        Kind{"OfGraphs", expect_no_dead_keys<GraphConfig>, "graph", "graphs"},
        Kind{"OfHardware", expect_no_dead_keys<Hardware>, "hardware", "hardware"},
        Kind{"OfIntervals", expect_no_dead_keys<study::ParameterErrors>, "intervals", "intervals"},
        Kind{"OfExclusions", expect_no_dead_keys<accuracy::Exclusions>, "exclusions", "accuracy"},
        Kind{"OfTables", expect_no_dead_keys<accuracy::RowFormat>, "table", "tables"},
        Kind{"OfKernelNames", expect_no_dead_keys<profile::KernelNames>, "kernel_names",
             "profiles"},
        Kind{"OfFailures", expect_no_dead_keys<elastic::FailureRates>, "failures", "failures"},
        Kind{"OfRunsThatFail", expect_no_dead_keys<elastic::Timeline>, "elastic", "elastic"},
        Kind{"OfSweeps", expect_no_dead_keys<sweep::Sweep>, "sweep", "sweeps"}),
    [](const testing::TestParamInfo<Kind>& of) { return of.param.name; });

TEST(EveryKeyChangesSomething, OfStudies) {
  Dead dead("study");
  const auto files = files_of("studies");
  const WordPool pool = pool_of(files);
  for (const fs::path& file : files) {
    const auto keys = keys_to_try("study", file);
    if (keys.empty()) continue;
    bool refused = false;
    const std::string before = study_result(file.string(), "", "", refused);
    ASSERT_FALSE(refused) << before;
    for (const WrittenKey& key : keys) {
      const bool alive = lives(key, pool, [&](const std::string& value) -> std::optional<bool> {
        const std::string after = study_result(file.string(), key.path, value, refused);
        if (refused) return std::nullopt;
        return after != before;
      });
      if (!alive) dead.add(file, key);
    }
  }
}

}  // namespace
}  // namespace foreshard
