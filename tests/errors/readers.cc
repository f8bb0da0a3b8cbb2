// How the inputs of the cases are read: as the commands read them.
#include <fmt/format.h>

#include "base/csv.h"
#include "base/quantity.h"
#include "tests/base/yaml/example.h"
#include "tests/cli/program.h"
#include "tests/errors/cases.h"
#include "tests/test.h"

#include "sim/elastic/run.h"
#include "sim/study/measured_times.h"
#include "sim/study/run.h"
#include "sim/sweep/sweep.h"
#include "strategies/checkpoint/manifest.h"
#include "strategies/checkpoint/safetensors.h"
#include "strategies/comm/nccl/tables.h"
#include "strategies/comm/parameters.h"
#include "strategies/graph/graph_config.h"
#include "strategies/graph/hf_config.h"
#include "strategies/graph/layout.h"
#include "strategies/graph/model.h"
#include "strategies/launch/launch.h"
#include "strategies/parallelism/strategy.h"
#include "strategies/program/ir/json.h"
#include "topology/cluster_config.h"
#include "topology/import/import.h"
#include "validate/calibrate/nccl_tests.h"
#include "validate/measurement/measurement.h"

namespace foreshard::errors {
namespace {

template <class T>
Status status_of(const Result<T>& result) {
  return result ? Status() : result.error();
}

yaml::Options catalogue(const Question& question = {}) {
  yaml::Options options{.catalogue = {FORESHARD_SOURCE_DIR "/configs"}};
  for (const auto& [path, value] : question.set) options.overrides.push_back({path, value});
  return options;
}

std::string in_folder(const Question& question, const std::string& name) {
  const auto path = question.folder / name;
  std::ofstream(path, std::ios::binary) << question.text;
  return path.string();
}

// --- YAML ---

template <class T>
Status object(const Question& question, const char* name) {
  return status_of(yaml::Loader(catalogue(question)).read_text<T>(question.text, name));
}

Status communication(const Question& question) {
  return object<comm::Parameters>(question, "mine.yaml");
}
Status device(const Question& question) {
  return object<DeviceType>(question, "device.yaml");
}
Status example_of_yaml(const Question& question) {
  return status_of(yaml::Loader().read_text<example::Cluster>(question.text, "c.yaml"));
}
Status huggingface_type(const Question& question) {
  return object<HfType>(question, "mine.yaml");
}
Status node(const Question& question) {
  return object<NodeConfig>(question, "node.yaml");
}
Status transport(const Question& question) {
  return object<Transport>(question, "t.yaml");
}

Status cluster(const Question& question) {
  yaml::Loader loader(catalogue(question));
  FORESHARD_ASSIGN(const auto config,
                   loader.read_text<ClusterConfig>(question.text, "cluster.yaml"));
  return status_of(build_cluster(config, loader));
}

Status graph(const Question& question) {
  yaml::Loader loader;
  FORESHARD_ASSIGN(const auto config, loader.read_text<GraphConfig>(question.text, "g.yaml"));
  return status_of(build_graph(config, mesh_of(config), loader));
}

Status model(const Question& question) {
  yaml::Loader loader;
  FORESHARD_ASSIGN(const auto model, loader.read_text<Model>(question.text, "model.yaml"));
  return status_of(checked(model));
}

// `with` has the keys of the model.
Status strategy(const Question& question) {
  yaml::Loader loader(catalogue());
  FORESHARD_ASSIGN(const auto strategy, loader.read_text<Strategy>(question.text, "s.yaml"));
  FORESHARD_ASSIGN(const auto model, loader.read_text<Model>("{" + question.with + "}", "m.yaml"));
  std::string said;
  for (const auto& fault :
       faults_in(strategy, model, question.devices.value_or(strategy.devices())))
    said += (said.empty() ? "" : "\n") + fault.key + ": " + fault.message + " | " + fault.help;
  if (said.empty()) return {};
  return Error{Error::Code::kInvalidInput, said};
}

// The text is the name of an entry of the catalogue.
Status tuner(const Question& question) {
  return status_of(yaml::Loader(catalogue(question)).read_ref<comm::nccl::Tables>(question.text));
}

Status study(const Question& question) {
  FORESHARD_ASSIGN(const auto study, study::load_study({.study = in_folder(question, "mine.yaml")},
                                                       catalogue(question)));
  return status_of(study::run_study(study, {}));
}

// The study is read and not run.
Status study_file(const Question& question) {
  return status_of(
      study::load_study({.study = in_folder(question, "mine.yaml")}, catalogue(question)));
}

Status sweep(const Question& question) {
  return status_of(sweep::load_sweep(in_folder(question, "sweep.yaml"), catalogue(question)));
}

Status elastic(const Question& question) {
  const yaml::Options options = catalogue(question);
  FORESHARD_ASSIGN(const auto timeline,
                   elastic::load_timeline(in_folder(question, "line.yaml"), options));
  return status_of(
      elastic::run_elastic(timeline, {.catalogue = options.catalogue, .progress = {}}));
}

// --- other formats ---

Status arrivals(const Question& question) {
  return status_of(measure::arrivals_from_json(question.text));
}
Status csv(const Question& question) {
  return status_of(read_csv(question.text, "t.csv"));
}
Status layout(const Question& question) {
  return status_of(parse_layout(question.text, {12, 64}));
}
Status measured_times(const Question& question) {
  return status_of(study::read_measured_times(question.text, "ops.csv"));
}
Status measurement(const Question& question) {
  return status_of(measure::measurement_from_json(question.text));
}
Status program(const Question& question) {
  return status_of(program::program_from_json(question.text));
}

// `with` has the tokens of the sequence, where they are given.
Status huggingface(const Question& question) {
  yaml::Loader loader(catalogue());
  const std::string& with = question.with;
  const auto sequence = with.empty() ? std::nullopt : std::optional<std::int64_t>(std::stoll(with));
  return status_of(read_hf_config(question.text, "mine", sequence, false, loader));
}

Status launch_file(const Question& question) {
  return status_of(launch::import_launch({.text = question.text,
                                          .name = "run",
                                          .format = question.format,
                                          .devices = question.devices,
                                          .settled = question.set}));
}

Status manifest(const Question& question) {
  return status_of(checkpoint::manifest_from_json(question.text));
}
// `with` has the bytes of the data.
Status safetensors(const Question& question) {
  return status_of(checkpoint::parse_safetensors_header(question.text, std::stoll(question.with)));
}

Status nccl_tests(const Question& question) {
  const bool json = question.text.starts_with('{');
  return status_of(calibrate::read_nccl_tests(question.text, json ? "out.json" : "out.txt"));
}

// The dimension is named as its type is.
Status quantity(const Question& question) {
  const std::map<std::string, Status (*)(const std::string&)> dimensions{
      {"Bytes", [](const std::string& text) { return status_of(parse<Bytes>(text)); }},
      {"BytesPerSecond",
       [](const std::string& text) { return status_of(parse<BytesPerSecond>(text)); }},
      {"DollarsPerJoule",
       [](const std::string& text) { return status_of(parse<DollarsPerJoule>(text)); }},
      {"DollarsPerSecond",
       [](const std::string& text) { return status_of(parse<DollarsPerSecond>(text)); }},
      {"Flops", [](const std::string& text) { return status_of(parse<Flops>(text)); }},
      {"FlopsPerSecond",
       [](const std::string& text) { return status_of(parse<FlopsPerSecond>(text)); }},
      {"KilogramsPerJoule",
       [](const std::string& text) { return status_of(parse<KilogramsPerJoule>(text)); }},
      {"Seconds", [](const std::string& text) { return status_of(parse<Seconds>(text)); }},
  };
  return dimensions.at(question.with)(question.text);
}

Status topology(const Question& question) {
  yaml::Loader loader(catalogue());
  return status_of(
      import_topology({.text = question.text, .name = "in.txt", .device = question.with}, loader));
}

Status slurm(const Question& question) {
  yaml::Loader loader(catalogue());
  return status_of(import_topology(
      {.text = question.text, .name = "topology.conf", .node = "dgx-h100"}, loader));
}

// --- the program ---

// It refuses with exit code 2, and prints nothing but its message.
Status said(const std::string& arguments) {
  const cli::Outcome outcome = cli::foreshard(arguments);
  if (outcome.code == 0) return {};
  EXPECT_EQ(outcome.code, 2) << arguments << '\n' << outcome.err;
  EXPECT_EQ(outcome.out, "") << arguments;
  return Error{Error::Code::kInvalidInput, outcome.err};
}

// A command that is refused writes no written.json.
Status command(const Question& question) {
  const Status status = said(question.text);
  if (!status.ok()) {
    EXPECT_FALSE(std::filesystem::exists(question.folder / "written.json"));
  }
  return status;
}

// Nothing is written of what a refused study would have given.
Status simulate(const Question& question) {
  const std::string result = (question.folder / "result.json").string();
  const std::string trace = (question.folder / "trace.json").string();
  const Status status = said(fmt::format("simulate '{}' --format json -o '{}' --trace '{}'",
                                         in_folder(question, "study.yaml"), result, trace));
  if (status.ok()) return status;
  EXPECT_NE(status.error().message.find("error: "), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(result));
  EXPECT_FALSE(std::filesystem::exists(trace));
  return status;
}

}  // namespace

Reader reader_called(const std::string& name) {
  static const std::map<std::string, Reader> readers{
      {"arrivals", arrivals},
      {"cluster", cluster},
      {"command", command},
      {"communication", communication},
      {"csv", csv},
      {"device", device},
      {"elastic", elastic},
      {"graph", graph},
      {"huggingface", huggingface},
      {"huggingface-type", huggingface_type},
      {"launch", launch_file},
      {"layout", layout},
      {"manifest", manifest},
      {"measured-times", measured_times},
      {"measurement", measurement},
      {"nccl-tests", nccl_tests},
      {"model", model},
      {"node", node},
      {"program", program},
      {"quantity", quantity},
      {"safetensors", safetensors},
      {"simulate", simulate},
      {"slurm", slurm},
      {"strategy", strategy},
      {"study", study},
      {"study-file", study_file},
      {"sweep", sweep},
      {"topology", topology},
      {"transport", transport},
      {"tuner", tuner},
      {"yaml", example_of_yaml},
  };
  const auto found = readers.find(name);
  return found == readers.end() ? nullptr : found->second;
}

}  // namespace foreshard::errors
