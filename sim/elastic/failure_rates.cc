#include "sim/elastic/failure_rates.h"

#include <fmt/format.h>
#include <set>
#include <string_view>

namespace foreshard::elastic {
namespace {

std::string_view fault_of(const Cause& cause) {
  if (cause.mtbf && cause.events) return "has a rate as 'mtbf' or as 'events', not as both";
  const bool groups = cause.of == Unit::kGroup || cause.takes == Takes::kGroup;
  if (groups && cause.group < 2) return "says nothing of how many nodes a group has: give 'group'";
  if (!groups && cause.group > 1) return "has no group of nodes: leave out 'group'";
  if (cause.of == Unit::kJob && cause.takes != Takes::kNothing)
    return "is of the job, which is on no node of its own: set takes: nothing";
  if (cause.takes == Takes::kNothing && cause.repair)
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

const yaml::Names<Takes>& yaml_names(const Takes*) {
  static const yaml::Names<Takes> names{
      {"nothing", Takes::kNothing, "Processes end; all can be used again at once."},
      {"node", Takes::kNode, "The node, until it is repaired."},
      {"group", Takes::kGroup, "All nodes of the group, until they are repaired."},
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

}  // namespace foreshard::elastic
