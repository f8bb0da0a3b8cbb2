/// \file
/// How a network's adapters are driven, as a collective library sees it: what a message costs on
/// top of the wire and of the library's own steps (strategies/comm/parameters.h). A property of the
/// interconnect and its driver, whatever machine it is in (configs/transports/*.yaml). A library
/// may have numbers of its own for a transport (comm::Parameters::transports); the transport then
/// gives none.
///
///     time of a message of m bytes = wire + library + latency + rendezvous x m / (m + eager_limit)
///
/// Short messages travel at once ("eager"); of long ones the receiver is asked first, or the buffer
/// is registered first, which costs `rendezvous`. The share of messages that do grows with size.
///
/// Source: libfabric fi_rxm(7), fi_cxi(7) and the UCX documentation: eager and rendezvous
/// protocols. Not modelled: number of endpoints.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/units.h"
#include "base/yaml/sourced.h"
#include "base/yaml/table.h"

namespace foreshard {

/// The defaults are those of InfiniBand verbs with GPUDirect, in which the library's own latencies
/// are counted.
struct TransportNumbers {
  std::string name = "infiniband";
  yaml::Sourced<Seconds> latency{};     ///< Of every message. Invariant: >= 0.
  yaml::Sourced<Seconds> rendezvous{};  ///< Of long messages, besides. Invariant: >= 0.
  yaml::Sourced<Bytes> eager_limit{16_KiB, "", yaml::Evidence::kUser};  ///< Invariant: > 0.
  /// Of what one stream of long messages reaches, the part that messages to many peers at a time
  /// reach (all-to-all, trees). Invariant: in (0, 1].
  yaml::Sourced<double> exchange_efficiency{1.0, "", yaml::Evidence::kUser};
  /// Messages to many peers of at most `inject_limit` bytes, which the adapter's command carries
  /// itself, take `inject` more: it has to read them from the GPU. Invariants: >= 0.
  yaml::Sourced<Seconds> inject{0_s, "", yaml::Evidence::kUser};
  yaml::Sourced<Bytes> inject_limit{0_B, "", yaml::Evidence::kUser};
};
const yaml::Table<TransportNumbers>& yaml_table(const TransportNumbers*);

/// Empty: the library's own, or else the defaults.
struct Transport {
  std::string name = "infiniband";
  std::string summary{};
  std::optional<yaml::Sourced<Seconds>> latency{};
  std::optional<yaml::Sourced<Seconds>> rendezvous{};
  std::optional<yaml::Sourced<Bytes>> eager_limit{};
  std::optional<yaml::Sourced<double>> exchange_efficiency{};
  std::optional<yaml::Sourced<Seconds>> inject{};
  std::optional<yaml::Sourced<Bytes>> inject_limit{};
  /// Protocols that put flags beside the data (LL, LL128) need writes that arrive in order.
  bool ordered = true;
  /// What the settings that come with it leave to the library on its hosts, inside a node as well
  /// (NCCL_ALGO, NCCL_PROTO): algorithms of all-reduces, gathers and reduce-scatters, and protocols
  /// of these. Empty: all.
  std::vector<std::string> algorithms{};
  std::vector<std::string> protocols{};
  /// A plugin that comes with it decides between nodes in the place of the library's own tuner.
  bool own_tuner = false;
};
/// Catalogue folder: transports.
const yaml::Table<Transport>& yaml_table(const Transport*);

/// Those that it gives, and the defaults.
TransportNumbers numbers_of(const Transport& transport);
/// The key of the first number that it gives; empty if it gives none.
std::string first_number_of(const Transport& transport);

}  // namespace foreshard
