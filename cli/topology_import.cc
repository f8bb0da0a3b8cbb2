#include "cli/topology_import.h"

#include "base/file.h"
#include "base/quantity.h"
#include "base/text.h"
#include "cli/options.h"
#include "cli/output.h"

#include "topology/import/import.h"

namespace foreshard::cli {
namespace {

constexpr Bytes kLargestExport = 64_MiB;
constexpr std::size_t kMostNotes = 12;

/// Prints the first remarks. The output file has all of them at its top.
void note_first(const std::vector<std::string>& remarks) {
  const std::size_t shown = remarks.size() > kMostNotes ? kMostNotes - 1 : remarks.size();
  for (std::size_t i = 0; i < shown; ++i) note(remarks[i]);
  if (shown < remarks.size())
    note(std::to_string(remarks.size() - shown) +
         " more remarks stand at the top of what was written");
}

}  // namespace

void TopologyImport::declare(Declaration& topology) {
  Declaration command = topology.subcommand(
      "import", chosen_,
      "Turn another tool's description of a machine into a node or cluster file.",
      "NCCL_TOPO_DUMP_FILE=topo.xml ./all_reduce_perf -g 8\n"
      "foreshard topology import topo.xml -o my-node.yaml\n"
      "nvidia-smi topo -m > topo.txt\n"
      "foreshard topology import topo.txt --device H100-SXM -o my-node.yaml");
  command.required_argument("FILE", file_, "The file that the other tool wrote.");
  std::vector<std::string> names;
  for (const auto& format : import_formats()) names.emplace_back(format.name);
  command.option(
      "--as", "FORMAT", format_,
      "Format of the file: " + quoted_choice(names) + ". Recognised from the text by default.");
  command.option(
      "--device", "NAME", device_,
      "The kind of device, where the file does not name it: a name in configs/devices/.");
  command.option("--node", "NAME", node_,
                 "The machine, where the file lists host names only: a name in configs/nodes/.");
  command.option(
      "--link-rate", "RATE", link_rate_,
      "Nominal rate of the network links for which the file gives none, such as 400Gbit/s.");
  add_output(command, output_);
}

Result<ExitCode> TopologyImport::run(const Environment& environment) const {
  FORESHARD_ASSIGN(const auto text, read_file(file_, kLargestExport));
  ImportRequest request{
      .text = text, .name = file_, .format = format_, .device = device_, .node = node_};
  if (!link_rate_.empty()) {
    const auto rate = parse<BytesPerSecond>(link_rate_);
    if (!rate) return fail("--link-rate: " + rate.error().message);
    if (!(*rate > BytesPerSecond())) return fail("--link-rate must be positive");
    request.link_rate = *rate;
  }
  yaml::Loader loader({.catalogue = environment.catalogue});
  FORESHARD_ASSIGN(const auto imported, import_topology(request, loader));
  FORESHARD_TRY(write_result(output_, to_yaml(imported)));
  note_first(imported.remarks);
  return kDone;
}

}  // namespace foreshard::cli
