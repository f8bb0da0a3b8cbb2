#include "cli/topology_collectives.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <set>
#include <utility>

#include "base/quantity.h"
#include "base/record/record.h"
#include "base/text.h"
#include "base/yaml/given.h"
#include "cli/load.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/results.h"

#include "sim/page/page.h"
#include "strategies/comm/algorithms.h"
#include "strategies/comm/sweep.h"
#include "strategies/program/ir/group.h"
#include "topology/cluster_config.h"
#include "topology/summary.h"

namespace foreshard::comm::nccl {

const record::Record<Estimate>& record_of(const Estimate*) {
  static const auto record =
      record::Record<Estimate>("nccl", "What NCCL's own tuner would use, and its estimate.")
          .field("algorithm", &Estimate::algorithm)
          .field("protocol", [](const Estimate& of) { return comm::name_of(of.protocol); })
          .field("channels", &Estimate::channels)
          .field("time_s", &Estimate::time);
  return record;
}

}  // namespace foreshard::comm::nccl

namespace foreshard::cli {
namespace {

using comm::CollectiveKind;
using comm::SweepForm;
using comm::SweepRow;
using record::Record;

constexpr std::size_t kMostSizes = 10000;
constexpr std::size_t kMostRanks = 1 << 20;  // in a list, before it is checked against the cluster

Error bad(std::string message) {
  return {Error::Code::kInvalidInput, std::move(message)};
}

// Names of the operations that need no list of transfers. "receive" is left out: it is a "send"
// seen from the other end.
std::vector<std::string> operation_names() {
  std::vector<std::string> names;
  for (const comm::Algorithm& algorithm : comm::algorithms()) {
    const std::string name(comm::name_of(algorithm.kind));
    if (algorithm.kind == CollectiveKind::kExchange || algorithm.kind == CollectiveKind::kReceive ||
        algorithm.kind == CollectiveKind::kTokenExchange)
      continue;
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
  }
  return names;
}

CollectiveKind kind_named(const std::string& name) {
  for (const comm::Algorithm& algorithm : comm::algorithms())
    if (comm::name_of(algorithm.kind) == name) return algorithm.kind;
  return CollectiveKind::kAllReduce;
}

const std::string& name_of_device(const ClusterView& cluster, DeviceId device) {
  return cluster.vertices()[cluster.devices()[device.index()].vertex.index()].name;
}

/// The devices of an operation, and the names of the devices that "all" leaves out.
struct Group {
  std::vector<DeviceId> devices;
  std::vector<std::string> left_out{};
};

Group working(const ClusterView& cluster) {
  Group group;
  for (std::size_t i = 0; i < cluster.devices().size(); ++i) {
    const DeviceId device(static_cast<std::int64_t>(i));
    if (cluster.devices()[i].up)
      group.devices.push_back(device);
    else
      group.left_out.push_back(name_of_device(cluster, device) + " (down)");
  }
  return group;
}

Result<Group> group_of(const std::string& ranks, const ClusterView& cluster) {
  const std::size_t count = cluster.devices().size();
  std::vector<DeviceId> devices;
  if (ranks == "all") {
    Group group = working(cluster);
    if (group.devices.empty())
      return bad("no device of cluster '" + cluster.name() +
                 "' works: take out some of what stands under down");
    return group;
  }
  const auto list = program::read_ranges(ranks, std::max(kMostRanks, 2 * count));
  if (!list) return bad("--ranks " + ranks + ": " + list.error().message);
  if (list->empty()) return bad("--ranks: the list is empty; write ranks such as 0-7 or 0,8,16-23");
  std::set<std::int32_t> seen;
  for (const std::int32_t rank : *list) {
    if (static_cast<std::size_t>(rank) >= count)
      return bad(fmt::format("--ranks {}: there is no rank {}; cluster '{}' has ranks 0 to {}",
                             ranks, rank, cluster.name(), count - 1));
    if (!seen.insert(rank).second)
      return bad(fmt::format("--ranks {}: rank {} is listed twice", ranks, rank));
    devices.emplace_back(rank);
    if (!cluster.devices()[static_cast<std::size_t>(rank)].up)
      return bad(
          fmt::format("--ranks {}: rank {} is {}, which is down; leave it out, or give "
                      "--ranks all for those that work",
                      ranks, rank, name_of_device(cluster, devices.back())));
  }
  return Group{.devices = std::move(devices)};
}

Result<Bytes> size_of(std::string_view text) {
  const auto size = parse<Bytes>(text);
  if (!size) return bad(fmt::format("--sizes: {}", size.error().message));
  if (!(*size > 0_B)) return bad(fmt::format("--sizes: '{}' must be positive", text));
  return *size;
}

// "1KiB:16GiB", or "1MiB,4MiB,1GiB".
Result<std::vector<Bytes>> sizes_of(const std::string& text, const std::string& step_text) {
  const auto colon = text.find(':');
  if (colon == std::string::npos) {
    std::vector<Bytes> sizes;
    std::string_view rest = text;
    while (true) {
      const auto comma = rest.find(',');
      FORESHARD_ASSIGN(const auto size, size_of(rest.substr(0, comma)));
      sizes.push_back(size);
      if (comma == std::string_view::npos) return sizes;
      rest.remove_prefix(comma + 1);
    }
  }
  FORESHARD_ASSIGN(const auto first, size_of(std::string_view(text).substr(0, colon)));
  FORESHARD_ASSIGN(const auto last, size_of(std::string_view(text).substr(colon + 1)));
  if (last < first) return bad(fmt::format("--sizes {}: the last is less than the first", text));
  double step = 0;
  const auto [end, status] =
      std::from_chars(step_text.data(), step_text.data() + step_text.size(), step);
  if (status != std::errc() || end != step_text.data() + step_text.size() || !(step > 1))
    return bad(fmt::format("--step {}: must be a number greater than 1", step_text));
  if (std::log(last / first) / std::log(step) > static_cast<double>(kMostSizes))
    return bad(fmt::format("--step {}: makes more than {} sizes", step_text, kMostSizes));
  return comm::sizes_between(first, last, step);
}

// The form as an operation on one size uses it; `bottleneck` is empty where its channels limit it.
struct FormUse {
  std::string_view algorithm;
  std::string_view protocol;
  double channels = 0;
  Seconds time;
  struct Bottleneck {
    std::string link;
    std::string_view kind;
  };
  std::optional<Bottleneck> bottleneck;
};

struct SizeRow : FormUse {
  Bytes bytes;
  BytesPerSecond algorithm_rate;
  BytesPerSecond bus_rate;
  std::optional<FormUse> runner_up;
  std::optional<comm::nccl::Estimate> nccl;
  std::optional<std::vector<FormUse>> all;
};

FormUse use_of(const ClusterView& cluster, const SweepForm& form) {
  FormUse use{form.algorithm, form.protocol, form.channels, form.time, std::nullopt};
  if (!form.bottleneck.valid()) return use;
  const Link& link = cluster.links()[form.bottleneck.index()];
  use.bottleneck = {cluster.vertices()[link.from.index()].name + " -> " +
                        cluster.vertices()[link.to.index()].name,
                    name_of(link.kind)};
  return use;
}

SizeRow row_of(const ClusterView& cluster, const SweepRow& from, bool with_all) {
  const auto use = [&](const SweepForm& form) { return use_of(cluster, form); };
  SizeRow row{use(from.taken), from.bytes, from.algorithm_rate, from.bus_rate, {}, from.nccl, {}};
  if (from.runner_up) row.runner_up = use(*from.runner_up);
  if (!with_all) return row;
  row.all.emplace();
  for (const SweepForm& form : from.all) row.all->push_back(use(form));
  return row;
}

struct Collectives {
  std::string cluster;
  std::string operation;
  std::int64_t ranks = 0;
  std::int64_t nodes = 0;
  std::string communication;
  std::string tuner;
  std::vector<SizeRow> rows;
  std::vector<std::string> left_out;
  std::string chosen;  // algorithm from the command line; empty: the tuner chooses
};

std::string form_name(std::string_view algorithm, std::string_view protocol) {
  return protocol.empty() ? std::string(algorithm) : fmt::format("{} {}", algorithm, protocol);
}

std::string why(const SizeRow& row) {
  if (!row.runner_up) return "the only form";
  return fmt::format("{} {}", form_name(row.runner_up->algorithm, row.runner_up->protocol),
                     format(row.runner_up->time));
}

std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t kMostListed = 8;
  const std::vector<std::string> first(
      names.begin(),
      names.begin() + static_cast<std::ptrdiff_t>(std::min(names.size(), kMostListed)));
  const std::size_t more = names.size() - first.size();
  return join(first) + (more > 0 ? fmt::format(" and {} more", more) : "");
}

std::string to_text(const Collectives& results, const Paper& paper) {
  Page page(paper);
  page.line(fmt::format("{} of {} {} on {} {} of {}; times by '{}', {}", results.operation,
                        results.ranks, plural(results.ranks, "rank"), results.nodes,
                        plural(results.nodes, "node"), results.cluster, results.communication,
                        results.chosen.empty() ? "tuner " + results.tuner
                                               : "algorithm " + results.chosen + " as given"));
  if (!results.left_out.empty()) page.line("left out: " + listed(results.left_out));
  TextTable table({">size", "<algorithm", "<protocol", ">channels", ">time", ">algbw", ">busbw",
                   "<bottleneck", "<NCCL's estimate", "<runner-up"});
  const auto bottleneck = [&](const FormUse& form) {
    return form.bottleneck   ? fmt::format("{} ({})", form.bottleneck->link, form.bottleneck->kind)
           : form.time > 0_s ? "its channels"
                             : "-";
  };
  for (const SizeRow& row : results.rows) {
    const std::string nccl =
        row.nccl ? fmt::format("{} {}",
                               form_name(row.nccl->algorithm, comm::name_of(row.nccl->protocol)),
                               format(row.nccl->time))
                 : "-";
    table.row(format(row.bytes), row.algorithm, row.protocol, fmt::format("{:g}", row.channels),
              format(row.time), format(row.algorithm_rate), format(row.bus_rate), bottleneck(row),
              nccl, why(row));
    if (!row.all) continue;
    for (const FormUse& form : *row.all)
      table.row("", fmt::format("  {}", form.algorithm), form.protocol,
                fmt::format("{:g}", form.channels), format(form.time), "", "", bottleneck(form));
  }
  page.table(table);
  return std::move(page).take();
}

std::string number(double value) {
  return fmt::format("{:.9g}", value);
}

std::string to_csv(const Collectives& table) {
  std::string text =
      "operation,ranks,nodes,bytes,algorithm,protocol,channels,time_us,algbw_gbs,busbw_gbs,"
      "bottleneck,bottleneck_kind,nccl_algorithm,nccl_protocol,nccl_channels,nccl_time_us,"
      "runner_up_algorithm,runner_up_protocol,runner_up_time_us,taken\n";
  const auto line = [&](const SizeRow& row, const FormUse& form, bool taken) {
    const double factor =
        row.algorithm_rate > BytesPerSecond() ? row.bus_rate / row.algorithm_rate : 0;
    const BytesPerSecond rate = form.time > 0_s ? row.bytes / form.time : BytesPerSecond();
    text += fmt::format(
        "{},{},{},{},{},{},{:g},{},{},{},{},{},{},{},{},{},{},{},{},{}\n", table.operation,
        table.ranks, table.nodes, std::llround(row.bytes / 1_B), form.algorithm, form.protocol,
        form.channels, number(form.time / 1_us), number(rate / 1_GB_s),
        number(factor * (rate / 1_GB_s)), form.bottleneck ? form.bottleneck->link : "",
        form.bottleneck ? form.bottleneck->kind : "", row.nccl ? row.nccl->algorithm : "",
        row.nccl ? comm::name_of(row.nccl->protocol) : "",
        row.nccl ? std::to_string(row.nccl->channels) : "",
        row.nccl ? number(row.nccl->time / 1_us) : "",
        taken && row.runner_up ? row.runner_up->algorithm : "",
        taken && row.runner_up ? row.runner_up->protocol : "",
        taken && row.runner_up ? number(row.runner_up->time / 1_us) : "", taken ? 1 : 0);
  };
  for (const SizeRow& row : table.rows) {
    line(row, row, true);
    if (!row.all) continue;
    for (const FormUse& form : *row.all)
      if (form.algorithm != row.algorithm || form.protocol != row.protocol) line(row, form, false);
  }
  return text;
}

const Record<FormUse::Bottleneck>& record_of(const FormUse::Bottleneck*) {
  static const auto record =
      Record<FormUse::Bottleneck>("link", "The link that limits the form; null: its channels do.")
          .field("link", &FormUse::Bottleneck::link)
          .field("kind", &FormUse::Bottleneck::kind);
  return record;
}

// `fields` and the keys of a form.
template <class Form>
Record<Form> with_form(Record<Form> fields) {
  return std::move(fields)
      .field("algorithm", &Form::algorithm)
      .field("protocol", &Form::protocol)
      .field("channels", &Form::channels)
      .field("time_s", &Form::time)
      .field("bottleneck", &Form::bottleneck);
}

const Record<FormUse>& record_of(const FormUse*) {
  static const auto record = with_form(Record<FormUse>("form"));
  return record;
}

const Record<SizeRow>& record_of(const SizeRow*) {
  static const auto record =
      with_form(Record<SizeRow>("row", "One size with the form that is taken.")
                    .field("bytes", record::at<&SizeRow::bytes, &Bytes::in_base>))
          .field("algbw_bytes_per_s", &SizeRow::algorithm_rate)
          .field("busbw_bytes_per_s", &SizeRow::bus_rate)
          .field("runner_up", &SizeRow::runner_up)
          .field("nccl", &SizeRow::nccl)
          .sometimes("all", &SizeRow::all, "Every form (--all).");
  return record;
}

const Record<Collectives>& record_of(const Collectives*) {
  static const auto record =
      Record<Collectives>::result("foreshard.collectives/1",
                                  "Form and time of a collective operation by size, as `topology "
                                  "collectives` writes them.")
          .field("cluster", &Collectives::cluster)
          .field("operation", &Collectives::operation)
          .field("ranks", &Collectives::ranks)
          .field("nodes", &Collectives::nodes)
          .field("communication", &Collectives::communication)
          .field("tuner", &Collectives::tuner)
          .field("rows", &Collectives::rows)
          .sometimes("left_out", record::unless_empty<&Collectives::left_out>,
                     "Devices that are down.");
  return record;
}

// Puts the command line's choice in front of the choices of the file.
Status add_choice(const std::string& operation, const std::string& algorithm,
                  const std::string& protocol, std::int64_t channels,
                  comm::Parameters& parameters) {
  if (algorithm.empty()) {
    if (protocol != "any") return bad("--protocol needs --algorithm");
    if (channels > 0) return bad("--channels needs --algorithm");
    return {};
  }
  comm::AlgorithmOverride choice;
  choice.operation = operation;
  choice.algorithm = algorithm;
  for (const auto known : {comm::Protocol::kLl, comm::Protocol::kLl128, comm::Protocol::kSimple})
    if (protocol == comm::name_of(known)) choice.protocol = known;
  if (channels > 0) choice.channels = channels;
  if (const std::string fault = comm::fault_in(choice); !fault.empty())
    return bad("--algorithm: " + fault);
  parameters.choices.insert(parameters.choices.begin(), choice);
  return {};
}

}  // namespace

record::Json collectives_schema() {
  return record::schema<Collectives>();
}

void TopologyCollectives::declare(Declaration& topology) {
  Declaration declaration = topology.subcommand(
      "collectives", chosen_,
      "Print the algorithm, protocol and time of a collective, size by size.",
      "foreshard topology collectives two-dgx-h100 --op all_reduce --ranks 0-15\n"
      "foreshard topology collectives two-dgx-h100 --op all_gather --sizes 1MiB:1GiB --step 4 \\\n"
      "    --algorithm ring --protocol LL128 --format csv");
  declaration.required_argument(
      "CLUSTER", cluster_, "A cluster: a file (a node's is a cluster of one) or a catalogue name.");
  declaration.choice("--op", operation_, operation_names(), "The operation.");
  declaration.option("--ranks", "LIST", ranks_,
                     "Devices that take part, in this order, such as 0-63 or 0,8,16-23, or all.");
  declaration.option("--sizes", "FIRST:LAST", sizes_,
                     "Range of sizes, counted as by nccl-tests, or a list such as 1MiB,64MiB.");
  declaration.option("--step", "FACTOR", step_, "Factor from one size to the next.");
  declaration.option("--algorithm", "NAME", algorithm_,
                     "Use this algorithm, even if another is faster.");
  declaration.choice("--protocol", protocol_, {"any", "LL", "LL128", "Simple"},
                     "With --algorithm: use this protocol.");
  declaration.count("--channels", channels_, 0,
                    "With --algorithm: use this number of channels; 0: its own.");
  declaration.choice("--tuner", tuner_, {"configured", "fastest", "nccl"},
                     "What decides: the communication file, simulated times, or NCCL's estimates.");
  declaration.option("--communication", "FILE", communication_,
                     "Communication library: a file or a catalogue name.");
  declaration.flag("--all", all_, "Show every form, including those that NCCL does not have.");
  add_format(declaration, format_, {"text", "csv", "json", "markdown"});
  declaration.repeatable("--set", "KEY=VALUE", sets_,
                         "Set a value of the cluster, for example nodes=4; it takes the place of "
                         "the one in the file. May be given again.");
  add_output(declaration, output_);
}

Result<ExitCode> TopologyCollectives::run(const Environment& environment) const {
  FORESHARD_ASSIGN(auto overrides, overrides_of(sets_));
  yaml::Loader loader({.catalogue = environment.catalogue, .overrides = std::move(overrides)});
  FORESHARD_ASSIGN(const auto config, load_cluster(cluster_, loader, environment.catalogue));
  FORESHARD_ASSIGN(const auto cluster, build_cluster(config, loader));

  yaml::Loader plain({.catalogue = environment.catalogue});
  FORESHARD_ASSIGN(comm::Parameters parameters,
                   yaml::read_given<comm::Parameters>(communication_, plain));
  if (tuner_ == "fastest") parameters.tuner = comm::TunerKind::kFastest;
  if (tuner_ == "nccl") {
    if (!parameters.nccl)
      return fail("--tuner nccl: communication '" + parameters.name +
                  "' has no constants of NCCL's tuner; add nccl: nccl-2.28");
    parameters.tuner = comm::TunerKind::kNccl;
  }
  FORESHARD_TRY(add_choice(operation_, algorithm_, protocol_, channels_, parameters));

  const CollectiveKind kind = kind_named(operation_);
  FORESHARD_ASSIGN(auto chosen, group_of(ranks_, cluster));
  FORESHARD_ASSIGN(const auto sizes, sizes_of(sizes_, step_));
  std::set<std::int32_t> nodes;
  for (const DeviceId device : chosen.devices) nodes.insert(cluster.devices()[device.index()].node);

  const comm::Participants group{.cluster = &cluster, .devices = std::move(chosen.devices)};
  FORESHARD_ASSIGN(const auto rows, comm::sweep(kind, group, parameters, sizes, all_));
  Collectives table{.cluster = cluster.name(),
                    .operation = operation_,
                    .ranks = std::ssize(group.devices),
                    .nodes = std::ssize(nodes),
                    .communication = parameters.name,
                    .tuner = std::string(yaml::name_of(parameters.tuner)),
                    .rows = {},
                    .left_out = std::move(chosen.left_out),
                    .chosen = algorithm_};
  for (const SweepRow& row : rows) table.rows.push_back(row_of(cluster, row, all_));
  std::string text = format_ == "csv"    ? to_csv(table)
                     : format_ == "text" ? to_text(table, paper_for(output_))
                                         : record::text_of(record::write(table), 2);
  if (format_ == "markdown") {
    FORESHARD_ASSIGN(text, page::markdown_of(text));
  }
  FORESHARD_TRY(write_result(output_, text));
  return kDone;
}

}  // namespace foreshard::cli
