#include "topology/transport.h"

#include <algorithm>
#include <array>
#include <span>
#include <string_view>

#include "base/text.h"

namespace foreshard {
namespace {

// The library's algorithms and protocols (strategies/comm/) that NCCL_ALGO and NCCL_PROTO can name.
constexpr std::array<std::string_view, 7> kAlgorithms{
    "ring", "tree", "nvls", "nvls_tree", "collnet_chain", "collnet_direct", "pat"};
constexpr std::array<std::string_view, 3> kProtocols{"LL", "LL128", "Simple"};

std::string unknown_in(const std::vector<std::string>& names,
                       std::span<const std::string_view> known) {
  for (const std::string& name : names) {
    if (std::ranges::find(known, name) != known.end()) continue;
    return "unknown '" + name + "'; there are " +
           join(std::vector<std::string>(known.begin(), known.end()));
  }
  return {};
}

}  // namespace

const yaml::Table<TransportNumbers>& yaml_table(const TransportNumbers*) {
  using T = TransportNumbers;
  static const auto table =
      yaml::Table<T>("transport numbers", "What messages cost a library on one transport.")
          .required("name", &T::name, "Name of the transport.", yaml::non_empty())
          .required("latency", &T::latency,
                    "Latency of every message, on top of the library's own.", yaml::non_negative())
          .required("rendezvous", &T::rendezvous, "Additional time of long messages.",
                    yaml::non_negative())
          .required("eager_limit", &T::eager_limit, "Size at which half of `rendezvous` is paid.",
                    yaml::positive())
          .required("exchange_efficiency", &T::exchange_efficiency,
                    "Part of the rate of one stream that messages to many peers reach.",
                    yaml::positive(), yaml::at_most(1.0))
          .optional("inject", &T::inject,
                    "Additional time of messages to many peers that commands carry (default: 0 s).",
                    yaml::non_negative())
          .optional("inject_limit", &T::inject_limit,
                    "Largest message that a command carries (default: none).",
                    yaml::non_negative());
  return table;
}

const yaml::Table<Transport>& yaml_table(const Transport*) {
  using T = Transport;
  static const auto table =
      yaml::Table<T>("transport",
                     "How a network's adapters are driven. Numbers that the communication library "
                     "has of its own for this name are not given here.")
          .folder("transports")
          .required("name", &T::name, "Name in reports.")
          .optional("summary", &T::summary, "Which adapters and driver, in a sentence.")
          .optional("latency", &T::latency,
                    "Latency of every message, on top of the library's own (default: 0 s).",
                    yaml::non_negative())
          .optional("rendezvous", &T::rendezvous,
                    "Additional time of long messages (default: 0 s).", yaml::non_negative())
          .optional("eager_limit", &T::eager_limit,
                    "Size at which half of `rendezvous` is paid (default: 16 KiB).",
                    yaml::positive())
          .optional("exchange_efficiency", &T::exchange_efficiency,
                    "Part of the rate of one stream that messages to many peers reach (default: "
                    "1).",
                    yaml::positive(), yaml::at_most(1.0))
          .optional("inject", &T::inject,
                    "Additional time of messages to many peers that commands carry (default: 0 s).",
                    yaml::non_negative())
          .optional("inject_limit", &T::inject_limit,
                    "Largest message that a command carries (default: none).", yaml::non_negative())
          .optional("ordered", &T::ordered,
                    "False where writes may overtake each other: LL and LL128 cannot be used.")
          .optional("algorithms", &T::algorithms,
                    "Algorithms of collectives that its settings allow: ring, tree ... Default: "
                    "all.")
          .optional("protocols", &T::protocols,
                    "Protocols of these that its settings allow. Default: all.")
          .optional("own_tuner", &T::own_tuner,
                    "True where a plugin of the transport decides in the place of the library's "
                    "own tuner.")
          .check("algorithms",
                 [](const T& transport) { return unknown_in(transport.algorithms, kAlgorithms); })
          .check("protocols",
                 [](const T& transport) { return unknown_in(transport.protocols, kProtocols); });
  return table;
}

TransportNumbers numbers_of(const Transport& transport) {
  TransportNumbers numbers;
  numbers.name = transport.name;
  numbers.latency = transport.latency.value_or(numbers.latency);
  numbers.rendezvous = transport.rendezvous.value_or(numbers.rendezvous);
  numbers.eager_limit = transport.eager_limit.value_or(numbers.eager_limit);
  numbers.exchange_efficiency = transport.exchange_efficiency.value_or(numbers.exchange_efficiency);
  numbers.inject = transport.inject.value_or(numbers.inject);
  numbers.inject_limit = transport.inject_limit.value_or(numbers.inject_limit);
  return numbers;
}

std::string first_number_of(const Transport& transport) {
  if (transport.latency) return "latency";
  if (transport.rendezvous) return "rendezvous";
  if (transport.eager_limit) return "eager_limit";
  if (transport.exchange_efficiency) return "exchange_efficiency";
  if (transport.inject) return "inject";
  if (transport.inject_limit) return "inject_limit";
  return {};
}

}  // namespace foreshard
