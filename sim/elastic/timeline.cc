// Reads and checks the YAML of `foreshard elastic` (timeline.h). Times count from the beginning of
// the run.
#include "sim/elastic/timeline.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <set>
#include <string_view>
#include <utility>

#include "base/quantity.h"
#include "base/yaml/given.h"

namespace foreshard::elastic {
namespace {

std::string_view fault_of(const Cause& cause) {
  if (cause.mtbf && cause.events) return "has a rate as 'mtbf' or as 'events', not as both";
  const bool groups = cause.of == Unit::kGroup || cause.takes == FailureDomain::kGroup;
  if (groups && cause.group < 2) return "says nothing of how many nodes a group has: give 'group'";
  if (!groups && cause.group > 1) return "has no group of nodes: leave out 'group'";
  if (cause.of == Unit::kJob && cause.takes != FailureDomain::kNothing)
    return "is of the job, which is on no node of its own: set takes: nothing";
  if (cause.takes == FailureDomain::kNothing && cause.repair)
    return "takes nothing that would be repaired: leave out 'repair'";
  return "";
}

std::string fault_in_cause(const Cause& cause) {
  const std::string_view fault = fault_of(cause);
  return fault.empty() ? "" : fmt::format("'{}' {}", cause.name, fault);
}

std::int64_t units_seen(const Cause& cause, const Observed& observed) {
  switch (cause.of) {
    case Unit::kDevice:
      return observed.devices;
    case Unit::kNode:
      return observed.nodes;
    case Unit::kGroup:
      return observed.nodes / cause.group;
    case Unit::kJob:
      return 1;
  }
  return 0;
}

std::string fault_in_rates(const FailureRates& rates) {
  std::set<std::string> names;
  for (const Cause& cause : rates.causes) {
    if (!names.insert(cause.name).second) return fmt::format("two causes are '{}'", cause.name);
    if (!cause.events) continue;
    if (!rates.observed || units_seen(cause, *rates.observed) == 0)
      return fmt::format(
          "'{}' has events, but `observed` does not say in which time and of how "
          "many {}s",
          cause.name, yaml::name_of(cause.of));
  }
  return "";
}

}  // namespace

const yaml::Names<Unit>& yaml_names(const Unit*) {
  static const yaml::Names<Unit> names{
      {"device", Unit::kDevice, "Every device."},
      {"node", Unit::kNode, "Every node."},
      {"group", Unit::kGroup, "Every `group` nodes, one behind the other: a rack."},
      {"job", Unit::kJob, "The run as a whole, once."},
  };
  return names;
}

const yaml::Names<FailureDomain>& yaml_names(const FailureDomain*) {
  static const yaml::Names<FailureDomain> names{
      {"nothing", FailureDomain::kNothing, "Processes end; all can be used again at once."},
      {"node", FailureDomain::kNode, "The node, until it is repaired."},
      {"group", FailureDomain::kGroup, "All nodes of the group, until they are repaired."},
  };
  return names;
}

const yaml::Table<Cause>& yaml_table(const Cause*) {
  static const auto table =
      yaml::Table<Cause>("cause", "Something that fails.")
          .required("name", &Cause::name, "What results call it.", yaml::non_empty())
          .optional("of", &Cause::of, "What there is one of.")
          .optional("mtbf", &Cause::mtbf, "Mean time between the failures of one unit.",
                    yaml::positive())
          .optional("events", &Cause::events,
                    "Instead: how many there were of it in what `observed` says.", yaml::positive())
          .optional("takes", &Cause::takes, "What does not work until it is repaired.")
          .optional("group", &Cause::group, "Nodes of a group.", yaml::at_least(1))
          .optional("repair", &Cause::repair,
                    "Until what it takes works again (default: that of the time line).",
                    yaml::non_negative())
          .check("", fault_in_cause);
  return table;
}

const yaml::Table<Observed>& yaml_table(const Observed*) {
  static const auto table =
      yaml::Table<Observed>("observed", "Where and for how long failures were counted.")
          .required("time", &Observed::time, "For how long.", yaml::positive())
          .optional("devices", &Observed::devices, "On how many devices.", yaml::at_least(0))
          .optional("nodes", &Observed::nodes, "On how many nodes.", yaml::at_least(0));
  return table;
}

const yaml::Table<FailureRates>& yaml_table(const FailureRates*) {
  static const auto table =
      yaml::Table<FailureRates>("failures", "How often the parts of a machine fail.")
          .folder("failures")
          .optional("name", &FailureRates::name, "What results call them.")
          .optional("description", &FailureRates::description, "A sentence, for people.")
          .optional("observed", &FailureRates::observed, "Where `events` were counted.")
          .required("causes", &FailureRates::causes, "What fails.", yaml::non_empty())
          .check("causes", fault_in_rates);
  return table;
}

std::optional<Seconds> mtbf_of(const Cause& cause, const FailureRates& rates) {
  if (cause.mtbf) return **cause.mtbf;
  if (!cause.events || !rates.observed) return std::nullopt;
  return rates.observed->time * static_cast<double>(units_seen(cause, *rates.observed)) /
         **cause.events;
}

namespace {

namespace fs = std::filesystem;

constexpr double kMostHistories = 100'000;

std::string fault_in_event(const Event& event) {
  if (event.fails.has_value() == event.adds.has_value())
    return "an event needs either 'fails' with a node, or 'adds' with a number of nodes";
  if (event.repaired && !event.fails) return "'repaired' is of a node that fails";
  if (event.repaired && *event.repaired <= event.at)
    return fmt::format("the repair ({}) must come after the failure ({})",
                       format_exact(*event.repaired), format_exact(event.at));
  if (event.fails && !node_number(*event.fails))
    return fmt::format("'{}' is no node: they are called node0, node1, ...", *event.fails);
  return "";
}

std::string fault_in_checkpoint(const CheckpointRule& rule) {
  if (rule.blocks && !rule.asynchronous)
    return "'blocks' is of asynchronous checkpoints: a synchronous one stops the run until it is "
           "written";
  if (rule.interval && rule.optimum) return "'interval' is given, so no 'optimum' is looked for";
  return "";
}

std::string fault_in_timeline(const Timeline& timeline) {
  std::set<Policy> seen;
  for (const Policy policy : timeline.policies)
    if (!seen.insert(policy).second)
      return fmt::format("policy '{}' is given twice", yaml::name_of(policy));
  if (timeline.regroup && !seen.contains(Policy::kReroute))
    return "'regroup' is of policy reroute, which is not compared";
  if (timeline.spares > 0 && !seen.contains(Policy::kReplace))
    return "'spares' are of policy replace, which is not compared";
  return "";
}

}  // namespace

std::optional<std::int64_t> node_number(const std::string& name) {
  constexpr std::string_view kNode = "node";
  if (!name.starts_with(kNode)) return std::nullopt;
  std::int64_t number = -1;
  const char* const end = name.data() + name.size();
  const auto read = std::from_chars(name.data() + kNode.size(), end, number);
  if (read.ec != std::errc{} || read.ptr != end || number < 0) return std::nullopt;
  return number;
}

const yaml::Names<Optimum>& yaml_names(const Optimum*) {
  static const yaml::Names<Optimum> names{
      {"daly", Optimum::kDaly, "Daly's estimate of higher order."},
      {"young", Optimum::kYoung, "Young's of first order."},
  };
  return names;
}

const yaml::Names<Policy>& yaml_names(const Policy*) {
  static const yaml::Names<Policy> names{
      {"replace", Policy::kReplace, "A spare node takes the place of one that fails."},
      {"shrink", Policy::kShrink, "The run goes on with the nodes that are left."},
      {"wait", Policy::kWait, "The run waits until what failed is repaired."},
      {"reroute", Policy::kReroute, "The replicas that are left share the batch."},
  };
  return names;
}

const yaml::Names<Recovery>& yaml_names(const Recovery*) {
  static const yaml::Names<Recovery> names{
      {"checkpoint", Recovery::kCheckpoint, "All ranks read the last checkpoint."},
      {"replicas", Recovery::kReplicas,
       "Slices come from devices that hold the same, where there are such."},
  };
  return names;
}

const yaml::Table<Event>& yaml_table(const Event*) {
  static const auto table =
      yaml::Table<Event>("event", "What happens to the machine.")
          .required("at", &Event::at, "When, counted from the beginning of the run.",
                    yaml::non_negative())
          .optional("fails", &Event::fails, "A node: node3.", yaml::non_empty())
          .optional("adds", &Event::adds, "Or so many nodes that come to stay.", yaml::at_least(1))
          .optional("repaired", &Event::repaired,
                    "When the node works again, counted likewise (default: never).",
                    yaml::positive())
          .check("at", fault_in_event);
  return table;
}

const yaml::Table<CheckpointRule>& yaml_table(const CheckpointRule*) {
  using C = CheckpointRule;
  static const auto table =
      yaml::Table<C>("checkpoint", "How the run is saved.")
          .required("storage", &C::storage,
                    "What all ranks together write, and read, in a time: 100 GB/s.",
                    yaml::positive())
          .optional("interval", &C::interval,
                    "What is computed between two checkpoints (default: the optimum).",
                    yaml::positive())
          .optional("optimum", &C::optimum,
                    "By which formula, where no interval is given (default: daly).")
          .optional("asynchronous", &C::asynchronous,
                    "Whether the run goes on once the slices are copied to the hosts.")
          .optional("blocks", &C::blocks,
                    "What that copy takes (default: by the cluster's links to the hosts).",
                    yaml::non_negative())
          .check("", fault_in_checkpoint);
  return table;
}

const yaml::Table<Timeline>& yaml_table(const Timeline*) {
  using T = Timeline;
  static const auto table =
      yaml::Table<T>("elastic", "A run on a machine that fails, and what is done about it.")
          .folder("elastic")
          .optional("description", &T::description, "A sentence on what is asked.")
          .required("study", &T::study, "The run: a catalogue name or a path.", yaml::non_empty())
          .optional("set", &T::set, "Values of the study, as --set takes them.")
          .optional("train", &T::train, "How long the training is (default: the study's).")
          .optional("failures", &T::failures, "How often parts fail: failures are drawn.")
          .optional("repair", &T::repair,
                    "Until what failed works again, where its cause does not say it.",
                    yaml::non_negative())
          .optional("events", &T::events, "What happens for certain.")
          .optional("spares", &T::spares, "Nodes that wait for others to fail.", yaml::at_least(0))
          .required("detection", &T::detection, "From a failure until somebody acts.",
                    yaml::non_negative())
          .required("restart", &T::restart, "Until processes and communicators are there again.",
                    yaml::non_negative())
          .optional("regroup", &T::regroup,
                    "Of reroute: until communicators are there without the lost replicas "
                    "(default: restart).",
                    yaml::non_negative())
          .optional("recovery", &T::recovery, "Where a run that failed takes its state from.")
          .required("checkpoint", &T::checkpoint, "How the run is saved.")
          .optional("search", &T::search, "How strategies for other numbers of nodes are found.")
          .optional("policies", &T::policies, "What is compared (default: all).", yaml::non_empty())
          .optional("histories", &T::histories, "How many are drawn, for each policy the same.",
                    yaml::between(1, kMostHistories))
          .optional("seed", &T::seed, "Of what is drawn.")
          .check("policies", fault_in_timeline);
  return table;
}

Result<LoadedTimeline> load_timeline(const std::string& name, const yaml::Options& options) {
  yaml::Loader loader(options);
  std::error_code status;
  const bool is_file = name == "-" || yaml::is_file_name(name) || fs::exists(name, status);
  FORESHARD_ASSIGN(Timeline timeline,
                   is_file ? loader.read_file<Timeline>(name) : loader.read_ref<Timeline>(name));
  if (!timeline.failures && timeline.events.empty())
    return loader.error_at("", "nothing happens",
                           "give 'failures', for example llama3-h100, or 'events'");
  if (!timeline.failures && !timeline.checkpoint.interval)
    return loader.error_at("checkpoint", "without 'failures' no interval is the best one",
                           "give checkpoint.interval: 30 min");
  if (!timeline.failures && timeline.repair)
    return loader.error_at("repair", "events say themselves when a node is repaired",
                           "give repaired: with the event, or failures");
  if (timeline.set.contains("train"))
    return loader.error_at("set.train", "the length of the training is a key of the time line",
                           "write train: 2T tokens beside set");
  std::ranges::stable_sort(timeline.events, {}, &Event::at);
  const fs::path file = is_file ? fs::path(name) : fs::path(loader.inputs().front().path);
  return LoadedTimeline{.name = name == "-" ? "stdin" : file.stem().string(),
                        .folder = name == "-" ? fs::path() : file.parent_path(),
                        .timeline = std::move(timeline),
                        .loader = std::move(loader)};
}

}  // namespace foreshard::elastic
