#include "validate/calibrate/machine.h"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <fmt/format.h>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>

#include "base/text.h"
#include "base/yaml/describe.h"
#include "base/yaml/quoted.h"

#include "validate/calibrate/collective_fit.h"
#include "validate/tables/device_names.h"

namespace foreshard::calibrate {
namespace {

// The source of each listed kernel: "replay on node1, node2; 2026-01-02T03:04:05Z".
std::string short_source_of(const std::vector<MeasuredRun>& runs) {
  std::vector<std::string> names;
  std::string date;
  for (const MeasuredRun& run : runs) {
    for (const measure::Machine& machine : run.measurement.machines)
      if (std::ranges::find(names, machine.name) == names.end()) names.push_back(machine.name);
    date = std::max(date, run.measurement.date);
  }
  return fmt::format("replay on {}; {}", join(names), date);
}

// "node1: processor X, blas Y; 2026-01-02; 3 runs of 10 steps"
std::string source_of(const std::vector<MeasuredRun>& runs) {
  std::vector<std::string> machines;
  std::string date;
  std::int64_t steps = 0;
  for (const MeasuredRun& run : runs) {
    for (const measure::Machine& machine : run.measurement.machines) {
      std::vector<std::string> facts;
      for (const auto& [name, value] : machine.facts)
        if (!value.empty()) facts.push_back(fmt::format("{} {}", name, value));
      std::string text = machine.name + (facts.empty() ? "" : ": " + join(facts));
      if (std::ranges::find(machines, text) == machines.end()) machines.push_back(std::move(text));
    }
    date = std::max(date, run.measurement.date);
    steps += run.measurement.repeats;
  }
  std::string text = fmt::format("replay on {}; {}; {} steps of {} Programs", join(machines, "; "),
                                 date, steps, runs.size());
  // Files write the text in double quotes.
  std::ranges::replace(text, '"', '\'');
  std::ranges::replace(text, '\\', '/');
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < ' '; }, ' ');
  return text;
}

void write_values(Page& page, const std::vector<FittedValue>& values) {
  TextTable table({"<", ">", "<"});
  for (const FittedValue& value : values)
    table.row(value.name, fmt::format("{:.4g}", value.value),
              value.kept.empty()
                  ? fmt::format("95 %: {:.4g} .. {:.4g}, before {:.4g}{}", value.low, value.high,
                                value.before,
                                value.at_bound ? "  (at its bound: the data call for more)" : "")
                  : "as before: " + value.kept);
  page.table(table);
}

std::string percent(const FitError& error) {
  return fmt::format("{:.1f} % median, {:.1f} % p90 of {}", 100 * error.median, 100 * error.p90,
                     error.rows);
}

// What was fitted, and how far the held-out half is off, as comments of a file.
std::string commented(const std::vector<FittedValue>& values, const std::string& held_out) {
  Page page({.width = 1000});  // lines of a file are not broken
  write_values(page, values);
  page.line(held_out);
  std::istringstream lines(std::move(page).take());
  std::string result;
  for (std::string line; std::getline(lines, line);) result += yaml::comment(line);
  return result;
}

// The YAML mapping `text` with its top-level block `key` replaced by a reference to `file`, and
// without empty lists: they are defaults, which no file may state.
std::string referring(const std::string& text, const std::string& key, const std::string& file) {
  std::string result;
  bool inside = false;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line.starts_with(key + ":")) {
      result += fmt::format("{}: ./{}\n", key, file);
      inside = true;
      continue;
    }
    if (inside && line.starts_with(' ')) continue;
    inside = false;
    if (!line.starts_with(' ') && line.ends_with(": []")) continue;
    result += line + '\n';
  }
  return result;
}

// File name from the efficiency's name in the catalogue, if that is a plain word.
std::string efficiency_file(const DeviceType& device) {
  std::string name = std::filesystem::path(device.efficiency.name).stem().string();
  const bool plain = !name.empty() && std::ranges::all_of(name, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '_';
  });
  if (!plain || std::set<std::string>{"cluster", "node", "device", "communication"}.contains(name))
    name = "efficiency";
  return name + ".yaml";
}

enum class Maker : std::uint8_t { kUnknown, kNvidia, kAmd, kIntel, kHuawei };

constexpr std::string_view kMakerNames[] = {"", "NVIDIA", "AMD", "Intel", "Huawei"};

// Words of device names, as drivers and tools write them.
Maker maker_named(const std::string& name) {
  constexpr std::pair<std::string_view, Maker> kWords[] = {
      {"nvidia", Maker::kNvidia}, {"geforce", Maker::kNvidia}, {"tesla", Maker::kNvidia},
      {"quadro", Maker::kNvidia}, {"amd", Maker::kAmd},        {"radeon", Maker::kAmd},
      {"instinct", Maker::kAmd},  {"gfx9", Maker::kAmd},       {"intel", Maker::kIntel},
      {"gaudi", Maker::kIntel},   {"habana", Maker::kIntel},   {"ascend", Maker::kHuawei},
      {"huawei", Maker::kHuawei}};
  const std::string text = lower_case(name);
  for (const auto& [word, maker] : kWords)
    if (text.find(word) != std::string::npos) return maker;
  const bool instinct = text.size() > 2 && text.starts_with("mi") &&
                        std::isdigit(static_cast<unsigned char>(text[2]));
  return instinct ? Maker::kAmd : Maker::kUnknown;
}

// Only NVIDIA's devices state a compute capability.
Maker maker_of(const DeviceType& device) {
  const bool capable = device.compute_capability.evidence != yaml::Evidence::kTransferred;
  return capable ? Maker::kNvidia : maker_named(device.name);
}

// Why a measurement is of other devices than the cluster's, by its own account; empty: it is not.
std::string other_device(const DeviceType& device, const measure::Measurement& measurement) {
  if (measurement.backend == "host" && !device.tensor_peak.empty())
    return fmt::format("'{}' was replayed on processors, but the numbers go into device '{}'",
                       measurement.program, device.name);
  for (const measure::Machine& machine : measurement.machines) {
    const auto fact = machine.facts.find("device");
    if (fact == machine.facts.end()) continue;
    if (is_another(device, fact->second))
      return fmt::format("'{}' was replayed on '{}', but the numbers go into device '{}'",
                         measurement.program, fact->second, device.name);
  }
  return {};
}

}  // namespace

Result<MachineCalibration> calibrate_machine(const MachineStart& start,
                                             const std::vector<MeasuredRun>& runs,
                                             const MachineOptions& options) {
  if (runs.empty())
    return Error{Error::Code::kInvalidInput, "nothing was measured: give at least one measurement"};
  for (std::size_t i = 0; i < runs.size(); ++i)
    for (std::size_t j = 0; j < i; ++j)
      if (runs[i].measurement == runs[j].measurement)
        return Error{Error::Code::kInvalidInput,
                     fmt::format("the measurement of '{}' from {} is given twice, which would make "
                                 "intervals too narrow; give it once",
                                 runs[i].measurement.program, runs[i].measurement.date)};
  if (start.cluster.node)
    for (const MeasuredRun& run : runs)
      for (const measure::Machine& machine : run.measurement.machines)
        if (const auto fact = machine.facts.find("device"); fact != machine.facts.end())
          if (const auto why = other_maker(*start.cluster.node->value.device, fact->second))
            return Error{Error::Code::kInvalidInput,
                         fmt::format("the measurement of '{}' {}", run.measurement.program, *why)};
  FORESHARD_ASSIGN(const auto samples, samples_of(runs));
  FORESHARD_ASSIGN(auto machine,
                   calibrate_machine(start, samples,
                                     {.text = source_of(runs),
                                      .short_text = short_source_of(runs),
                                      .device_of_rank = runs.front().program.device_of_rank},
                                     options));
  std::vector<std::string> others;
  for (const MeasuredRun& run : runs)
    if (std::string why = other_device(*start.cluster.node->value.device, run.measurement);
        !why.empty())
      others.push_back(std::move(why));
  machine.notes.insert(machine.notes.begin(), others.begin(), others.end());
  return machine;
}

Result<MachineCalibration> calibrate_machine(const MachineStart& start, const Samples& samples,
                                             const SampleSource& source,
                                             const MachineOptions& options) {
  if (!start.cluster.node)
    return Error{Error::Code::kUnsupported,
                 fmt::format("cluster '{}' has nodes of several kinds; calibrate each kind on a "
                             "cluster of its own",
                             start.cluster.name)};
  MachineCalibration machine{.cluster = start.cluster,
                             .communication = start.communication,
                             .kernels = {},
                             .links = {},
                             .source = source.text,
                             .outliers = samples.outliers,
                             .notes = {}};
  DeviceType& device = machine.cluster.node->value.device.value;
  if (samples.kernels.empty()) {
    machine.notes.emplace_back("no kernel was measured: the device stays as it is");
  } else {
    FORESHARD_ASSIGN(auto fit, fit_kernels(device, samples.kernels,
                                           {.source = machine.source,
                                            .source_of_each = source.short_text,
                                            .own_kernels = options.own_kernels}));
    if (fit.foreign > 0)
      machine.notes.push_back(fmt::format(
          "{} of {} kernels are foreshard's own, which no framework runs: what they would have "
          "changed is as before; for predictions of replays give --own-kernels",
          fit.foreign, samples.kernels.size()));
    device = fit.device;
    machine.outliers.insert(machine.outliers.end(), fit.outliers.begin(), fit.outliers.end());
    machine.kernels = std::move(fit);
  }
  if (samples.overlapped > 0)
    machine.notes.push_back(
        fmt::format("{} collectives ran beside kernels of their members and were not fitted to",
                    samples.overlapped));
  if (samples.collectives.empty()) {
    machine.notes.emplace_back(
        "no collective was measured alone: the communication library stays as it is");
    return machine;
  }
  FORESHARD_ASSIGN(auto cluster, build_cluster(machine.cluster));
  FORESHARD_ASSIGN(auto links, fit_links(cluster, start.communication, samples.collectives,
                                         source.device_of_rank, machine.source));
  machine.communication = links.parameters;
  machine.outliers.insert(machine.outliers.end(), links.outliers.begin(), links.outliers.end());
  machine.links = std::move(links);
  return machine;
}

std::optional<std::string> other_maker(const DeviceType& device, const std::string& named) {
  const Maker own = maker_of(device);
  const Maker other = maker_named(named);
  if (own == Maker::kUnknown || other == Maker::kUnknown || own == other) return std::nullopt;
  return fmt::format(
      "is of '{}', a device of {}, but the numbers would go into '{}' of {}; give the cluster that "
      "it ran on with --cluster",
      named, kMakerNames[static_cast<std::size_t>(other)], device.name,
      kMakerNames[static_cast<std::size_t>(own)]);
}

bool is_another(const DeviceType& device, const std::string& named) {
  const auto known = accuracy::device_named(named, {});
  return known && !known->guessed_memory && known->name != device.name;
}

std::string to_text(const MachineCalibration& machine, const Paper& paper) {
  Page page(paper);
  page.line(machine.source);
  const auto write_fit = [&](const auto& fit, const char* what, const FitError& held_out) {
    page.line(fmt::format("\n{}", what));
    write_values(page, fit.values);
    TextTable table({"<", "<"});
    table.row("before", percent(fit.before));
    table.row("fitted", percent(fit.after));
    table.row("half held out", percent(held_out));
    page.table(table);
  };
  if (machine.kernels) {
    const KernelFit& fit = *machine.kernels;
    write_fit(fit, "kernels", fit.held_out.model);
    page.line(fmt::format("  ... with measured neighbours within {:.2g} octaves: {}: {}",
                          fit.held_out.reach, percent(fit.held_out.with_neighbours),
                          fit.device.efficiency->reach > 0 ? "taken" : "not taken"));
  }
  if (machine.links) write_fit(*machine.links, "collectives", machine.links->held_out);
  if (!machine.outliers.empty()) page.line("\noutliers");
  for (const std::string& outlier : machine.outliers) page.line("  " + outlier);
  if (!machine.notes.empty()) page.line();
  for (const std::string& note : machine.notes) page.line("note: " + note);
  return std::move(page).take();
}

std::vector<OutputFile> files_of(const MachineCalibration& machine) {
  const std::string head = "# Written by foreshard calibrate.\n" + yaml::comment(machine.source);
  const NodeConfig& node = machine.cluster.node->value;
  const DeviceType& device = *node.device;
  const std::string efficiency = efficiency_file(device);
  std::string of_kernels = "# Nothing in this file was fitted to it.\n";
  if (machine.kernels)
    of_kernels = commented(machine.kernels->values,
                           "kernels held out: " + percent(machine.kernels->held_out.model));
  std::string of_links = "# Nothing in this file was fitted to it.\n";
  if (machine.links)
    of_links = commented(machine.links->values,
                         "collectives held out: " + percent(machine.links->held_out));
  return {
      {"cluster.yaml", head + referring(yaml::echo(machine.cluster), "node", "node.yaml")},
      {"node.yaml", head + referring(yaml::echo(node), "device", "device.yaml")},
      {"device.yaml", head + referring(yaml::echo(device), "efficiency", efficiency)},
      {efficiency, head + of_kernels + yaml::echo(*device.efficiency)},
      {"communication.yaml", to_yaml(machine.communication, head + of_links)},
  };
}

}  // namespace foreshard::calibrate
