#include "strategies/comm/parameters.h"

#include <algorithm>
#include <array>
#include <set>

#include "strategies/comm/algorithms.h"

namespace foreshard::comm {
namespace {

std::set<std::string> algorithm_names() {
  std::set<std::string> names;
  for (const Algorithm& algorithm : algorithms()) names.emplace(algorithm.name);
  return names;
}

std::string unknown_algorithm(const FormParameters& form) {
  const auto names = algorithm_names();
  if (names.contains(form.algorithm)) return {};
  std::string legal;
  for (const auto& name : names) legal += (legal.empty() ? "" : ", ") + name;
  return "unknown algorithm '" + form.algorithm + "'; there are " + legal;
}

std::string operation_names() {
  std::set<std::string_view> names;
  for (const Algorithm& algorithm : algorithms()) names.insert(name_of(algorithm.kind));
  std::string list;
  for (const auto name : names) list += (list.empty() ? "" : ", ") + std::string(name);
  return list;
}

std::string algorithms_of(const std::string& operation) {
  std::string list;
  for (const Algorithm& algorithm : algorithms())
    if (name_of(algorithm.kind) == operation)
      list += (list.empty() ? "" : ", ") + std::string(algorithm.name);
  return list;
}

std::string unknown_operation(const AlgorithmOverride& choice) {
  if (!algorithms_of(choice.operation).empty()) return {};
  return "unknown operation '" + choice.operation + "'; there are " + operation_names();
}

std::string impossible_operation(const FormParameters& form) {
  for (const std::string& operation : form.operations) {
    const bool known =
        std::any_of(algorithms().begin(), algorithms().end(), [&](const Algorithm& algorithm) {
          return algorithm.name == form.algorithm && name_of(algorithm.kind) == operation;
        });
    if (!known) return "'" + form.algorithm + "' does no '" + operation + "'";
  }
  return {};
}

// Whether `is` holds for all of the form's algorithms (one for each of its operations).
template <class Is>
bool all_of_algorithms(const FormParameters& form, Is is) {
  return std::ranges::all_of(algorithms(), [&](const Algorithm& algorithm) {
    const bool is_its =
        algorithm.name == form.algorithm &&
        (form.operations.empty() ||
         std::ranges::find(form.operations, name_of(algorithm.kind)) != form.operations.end());
    return !is_its || is(algorithm);
  });
}

std::string fault_in_channels(const FormParameters& form) {
  if (!form.channels || !unknown_algorithm(form).empty()) return {};
  if (!all_of_algorithms(form, [](const Algorithm& each) { return each.several_nodes; })) return {};
  return "'" + form.algorithm +
         "' never runs inside a node; remove channels (network_channels are those that it takes)";
}

std::string fault_in_hops(const FormParameters& form) {
  if (!unknown_algorithm(form).empty()) return {};
  const bool never =
      all_of_algorithms(form, [](const Algorithm& each) { return each.no_pcie_hop; });
  if (form.hop.pcie.has_value() != never) return {};
  return never ? "'" + form.algorithm + "' has no hop over PCIe; remove pcie"
               : "'" + form.algorithm + "' may hop over PCIe; give pcie";
}

// Whether `all` has each of `some`; an empty list stands for everything.
bool includes(const std::vector<std::string>& all, const std::vector<std::string>& some) {
  if (all.empty()) return true;
  return !some.empty() && std::ranges::all_of(some, [&](const std::string& each) {
    return std::ranges::find(all, each) != all.end();
  });
}

std::string hidden_form(const Parameters& parameters) {
  const auto& forms = parameters.forms;
  for (std::size_t later = 0; later < forms.size(); ++later)
    for (std::size_t earlier = 0; earlier < later; ++earlier)
      if (hides(forms[earlier], forms[later]))
        return "forms." + std::to_string(later) + " ('" + forms[later].algorithm + "', protocol " +
               std::string(yaml::name_of(forms[later].protocol)) + ") is never used: forms." +
               std::to_string(earlier) + " is for all of its devices and operations and comes " +
               "first; remove one, or put the one for fewer devices first";
  return {};
}

std::string impossible_algorithm(const AlgorithmOverride& choice) {
  const std::string legal = algorithms_of(choice.operation);
  if (legal.empty()) return {};
  for (const Algorithm& algorithm : algorithms())
    if (name_of(algorithm.kind) == choice.operation && algorithm.name == choice.algorithm)
      return {};
  return "'" + choice.algorithm + "' does no " + choice.operation + "; there are " + legal;
}

std::string empty_range(const AlgorithmOverride& choice) {
  const auto crossed = [](const auto& from, const auto& to) { return from && to && *to < *from; };
  if (crossed(choice.from_bytes, choice.to_bytes)) return "to_bytes is less than from_bytes";
  if (crossed(choice.from_ranks, choice.to_ranks)) return "to_ranks is less than from_ranks";
  if (crossed(choice.from_nodes, choice.to_nodes)) return "to_nodes is less than from_nodes";
  return {};
}

std::string too_many_channels(const AlgorithmOverride& choice) {
  constexpr std::int64_t kMost = 64;  // NCCL 2.28, src/include/device.h: MAXCHANNELS
  if (choice.channels.value_or(1) <= kMost) return {};
  return std::to_string(*choice.channels) + " channels are more than NCCL's " +
         std::to_string(kMost);
}

std::string transport_twice(const Parameters& parameters) {
  std::set<std::string> names;
  for (const TransportNumbers& one : parameters.transports)
    if (!names.insert(one.name).second) return "'" + one.name + "' is listed twice; remove one";
  return {};
}

std::string missing_tables(const Parameters& parameters) {
  if (parameters.tuner == TunerKind::kFastest || parameters.nccl) return {};
  return "the tuner " + std::string(yaml::name_of(parameters.tuner)) +
         " needs NCCL's constants: nccl: nccl-2.28";
}

std::string formless_choice(const Parameters& parameters) {
  for (const AlgorithmOverride& choice : parameters.choices) {
    const bool has_form =
        std::any_of(parameters.forms.begin(), parameters.forms.end(), [&](const auto& form) {
          return form.algorithm == choice.algorithm &&
                 (!choice.protocol || form.protocol == *choice.protocol);
        });
    if (has_form) continue;
    const std::string protocol =
        choice.protocol ? " with protocol " + std::string(yaml::name_of(*choice.protocol)) : "";
    return "no form of '" + choice.algorithm + "'" + protocol + " is listed";
  }
  return {};
}

}  // namespace

bool hides(const FormParameters& earlier, const FormParameters& later) {
  return earlier.algorithm == later.algorithm && earlier.protocol == later.protocol &&
         earlier.on_request == later.on_request &&
         includes(earlier.architectures, later.architectures) &&
         includes(earlier.operations, later.operations);
}

const yaml::Names<Protocol>& yaml_names(const Protocol*) {
  static const yaml::Names<Protocol> names{
      {"none", Protocol::kNone, "No protocol: the links alone."},
      {"LL", Protocol::kLl, "A flag beside every 4 bytes: least latency, half of the wire."},
      {"LL128", Protocol::kLl128, "A flag in every 128 bytes: little latency, 15/16 of the wire."},
      {"Simple", Protocol::kSimple, "Fences between data and flags: all of the wire."}};
  return names;
}

std::string_view name_of(Protocol protocol) {
  return protocol == Protocol::kNone ? std::string_view{} : yaml::name_of(protocol);
}

const yaml::Table<HopLatency>& yaml_table(const HopLatency*) {
  static const auto table =
      yaml::Table<HopLatency>("hop latency", "Of one hop, on top of the wire, by what it crosses.")
          .required("nvlink", &HopLatency::nvlink, "NVLink only.", yaml::non_negative())
          .optional("pcie", &HopLatency::pcie,
                    "PCIe or a link between sockets; of algorithms that have such hops.",
                    yaml::non_negative())
          .required("network", &HopLatency::network, "A network adapter.", yaml::non_negative())
          .optional("network_empty", &HopLatency::network_empty,
                    "Likewise, of a message without bytes in an all-to-all. Default: as network.",
                    yaml::non_negative());
  return table;
}

const yaml::Table<Efficiency>& yaml_table(const Efficiency*) {
  static const auto table =
      yaml::Table<Efficiency>("link efficiency", "Part of a link's payload rate left to the data.")
          .required("nvlink", &Efficiency::nvlink, "Efficiency of NVLink.", yaml::positive(),
                    yaml::at_most(1))
          .required("pcie", &Efficiency::pcie, "Efficiency of PCIe and links between sockets.",
                    yaml::positive(), yaml::at_most(1))
          .required("network", &Efficiency::network, "Efficiency of the network.", yaml::positive(),
                    yaml::at_most(1));
  return table;
}

const yaml::Table<FormParameters>& yaml_table(const FormParameters*) {
  static const auto table =
      yaml::Table<FormParameters>("form", "An algorithm with a protocol.")
          .required("algorithm", &FormParameters::algorithm, "ring, tree, chain ...")
          .required("protocol", &FormParameters::protocol, "How messages are acknowledged.")
          .required("base", &FormParameters::base, "Launch and synchronisation of the members.",
                    yaml::non_negative())
          .optional("network_base", &FormParameters::network_base,
                    "On top where it crosses the network, once: the host's thread that posts the "
                    "messages starts.",
                    yaml::non_negative())
          .required("hop", &FormParameters::hop, "Latency of each hop of the critical path.")
          .required("efficiency", &FormParameters::efficiency,
                    "Part of the payload rate that it reaches on the links it uses.")
          .optional("channels", &FormParameters::channels,
                    "SMs that each member spends on it inside a node (default: 1).",
                    yaml::at_least(1))
          .optional("network_channels", &FormParameters::network_channels,
                    "SMs that each member spends on it where it crosses the network.",
                    yaml::at_least(1))
          .optional("network_channel_rate", &FormParameters::network_channel_rate,
                    "Highest rate of one channel across the network. Default: no limit.",
                    yaml::positive())
          .optional("channel_rate", &FormParameters::channel_rate,
                    "Highest rate of one channel inside a node. Default: no limit.",
                    yaml::positive())
          .optional("host_rate", &FormParameters::host_rate,
                    "Highest rate of a device over PCIe where GPUs communicate across the root "
                    "complex. Default: no limit.",
                    yaml::positive())
          .optional("channel_bytes", &FormParameters::channel_bytes,
                    "Bytes that a channel takes before another one is opened.",
                    yaml::non_negative())
          .optional("largest_message", &FormParameters::largest_message,
                    "Largest message for which this protocol is used. Default: no limit.",
                    yaml::positive())
          .optional("chunk", &FormParameters::chunk,
                    "Largest chunk of a pipelined algorithm or an all-to-all.",
                    yaml::non_negative())
          .optional("turnaround", &FormParameters::turnaround,
                    "Messages that a member copies within itself while its NVLinks rest; of an "
                    "all-to-all with a chunk, chunks after the last one; of nvls and nvls_tree "
                    "with more than 8 heads, rounds of chunks that fill the pipeline.",
                    yaml::non_negative())
          .optional("architectures", &FormParameters::architectures,
                    "Device types that it applies to, by their efficiency files. Default: all.")
          .optional("operations", &FormParameters::operations,
                    "Operations that it applies to: all_reduce ... Default: all that the algorithm "
                    "supports.")
          .optional("on_request", &FormParameters::on_request,
                    "Used only where `choices` names the algorithm, because NCCL does not have it.")
          .optional("source", &FormParameters::source, "Where the numbers come from.")
          .optional("evidence", &FormParameters::evidence, "How well they are known.")
          .check("algorithm", unknown_algorithm)
          .check("operations", impossible_operation)
          .check("channels", fault_in_channels)
          .check("hop", fault_in_hops);
  return table;
}

const yaml::Names<TunerKind>& yaml_names(const TunerKind*) {
  static const yaml::Names<TunerKind> names{
      {"fastest", TunerKind::kFastest, "The least of the times predicted."},
      {"nccl", TunerKind::kNccl, "What NCCL's own tuner takes."},
      {"nccl-between-nodes", TunerKind::kBetweenNodes,
       "Between nodes the algorithm that NCCL's own tuner takes, else the least time."}};
  return names;
}

const yaml::Table<AlgorithmOverride>& yaml_table(const AlgorithmOverride*) {
  static const auto table =
      yaml::Table<AlgorithmOverride>("choice",
                                     "What some operations must use; ranges include their ends.")
          .required("operation", &AlgorithmOverride::operation, "all_reduce, all_gather ...")
          .optional("from_bytes", &AlgorithmOverride::from_bytes, "Least size. Default: any.",
                    yaml::non_negative())
          .optional("to_bytes", &AlgorithmOverride::to_bytes, "Largest size.", yaml::non_negative())
          .optional("from_ranks", &AlgorithmOverride::from_ranks, "Fewest ranks.",
                    yaml::at_least(1))
          .optional("to_ranks", &AlgorithmOverride::to_ranks, "Most ranks.", yaml::at_least(1))
          .optional("from_nodes", &AlgorithmOverride::from_nodes, "Fewest nodes.",
                    yaml::at_least(1))
          .optional("to_nodes", &AlgorithmOverride::to_nodes, "Most nodes.", yaml::at_least(1))
          .required("algorithm", &AlgorithmOverride::algorithm, "ring, tree, nvls ...")
          .optional("protocol", &AlgorithmOverride::protocol,
                    "LL, LL128 or Simple. Default: the tuner's choice.")
          .optional("channels", &AlgorithmOverride::channels, "Default: those of the form.",
                    yaml::at_least(1))
          .check("channels", too_many_channels)
          .check("operation", unknown_operation)
          .check("algorithm", impossible_algorithm)
          .check("to_bytes", empty_range);
  return table;
}

std::string fault_in(const AlgorithmOverride& choice) {
  for (auto* fault : {unknown_operation, impossible_algorithm, empty_range, too_many_channels})
    if (std::string text = fault(choice); !text.empty()) return text;
  return {};
}

const yaml::Table<Parameters>& yaml_table(const Parameters*) {
  static const auto table =
      yaml::Table<Parameters>("communication", "What the communication library adds to the links.")
          .required("name", &Parameters::name, "Name in reports.")
          .required("forms", &Parameters::forms,
                    "The algorithms and protocols that it chooses from; ties go to the earlier.",
                    yaml::non_empty())
          .optional("transports", &Parameters::transports,
                    "Numbers of this library on transports that give none themselves.")
          .optional("tuner", &Parameters::tuner, "What decides among them.")
          .optional("choices", &Parameters::choices,
                    "Forms that some operations must use; the first that applies decides.")
          .optional("nccl", &Parameters::nccl, "The constants of NCCL's own tuner.")
          .check("forms", hidden_form)
          .check("transports", transport_twice)
          .check("tuner", missing_tables)
          .check("choices", formless_choice)
          .folder("communication");
  return table;
}

const TransportNumbers* own_numbers(const Parameters& parameters, const Transport& transport) {
  const auto found =
      std::ranges::find(parameters.transports, transport.name, &TransportNumbers::name);
  return found == parameters.transports.end() ? nullptr : &*found;
}

std::optional<ReplacedNumber> replaced_number(const Parameters& parameters,
                                              const Transport& transport) {
  const std::string key = first_number_of(transport);
  if (key.empty() || own_numbers(parameters, transport) == nullptr) return std::nullopt;
  return ReplacedNumber{key,
                        "transport '" + transport.name + "' gives " + key +
                            ", but communication '" + parameters.name +
                            "' has numbers of its own for '" + transport.name + "' (transports)",
                        "remove " + key + ", or give the transport a name of its own"};
}

Parameters ideal_parameters() {
  // The usual algorithm of each operation. The others have the same cost in this model, or are used
  // on request.
  constexpr std::array kPlain{"ring",     "tree",   "nvls",         "chain",
                              "pairwise", "direct", "once_per_node"};
  Parameters parameters{.name = "ideal", .forms = {}};
  for (const auto& name : algorithm_names()) {
    FormParameters form;
    form.algorithm = name;
    form.on_request = std::find(kPlain.begin(), kPlain.end(), name) == kPlain.end();
    if (name == "nvls") form.operations = {std::string(name_of(CollectiveKind::kAllReduce))};
    parameters.forms.push_back(form);
  }
  return parameters;
}

}  // namespace foreshard::comm
