/// \file
/// How a network's adapters are driven, as a collective library sees it: what a message costs on
/// top of the wire and of the library's own steps (strategies/comm/parameters.h). A property of the
/// interconnect and its driver, whatever machine it is in (configs/transports/*.yaml). A library
/// may have numbers of its own for a transport (comm::Parameters::transports); the transport then
/// gives none.
///
///     time of a message of m bytes = wire + library + latency + rendezvous x m / (m + eager_limit)
///
/// Short messages travel at once ("eager"). Before a long message, the receiver is asked or the
/// buffer is registered, which costs `rendezvous`. The share of messages that pay it grows with
/// their size.
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

/// The defaults describe InfiniBand verbs with GPUDirect, which the library's own latencies already
/// include.
struct TransportNumbers {
  std::string name = "infiniband";
  yaml::Sourced<Seconds> latency{};     ///< Latency of every message. Invariant: >= 0.
  yaml::Sourced<Seconds> rendezvous{};  ///< Extra time of long messages. Invariant: >= 0.
  yaml::Sourced<Bytes> eager_limit{16_KiB, "", yaml::Evidence::kUser};  ///< Invariant: > 0.
  /// Rate of long messages to many peers at a time (all-to-all, trees), as a part of the rate of a
  /// single stream. Invariant: in (0, 1].
  yaml::Sourced<double> exchange_efficiency{1.0, "", yaml::Evidence::kUser};
  /// Extra time of messages to many peers of at most `inject_limit` bytes: the adapter's command
  /// carries such a message itself and has to read it from the GPU. Invariants: >= 0.
  yaml::Sourced<Seconds> inject{0_s, "", yaml::Evidence::kUser};
  yaml::Sourced<Bytes> inject_limit{0_B, "", yaml::Evidence::kUser};
};
const yaml::Table<TransportNumbers>& yaml_table(const TransportNumbers*);

/// A transport as the catalogue gives it. Numbers that are empty: the library's own, or else the
/// defaults.
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
  /// Algorithms of all-reduces, gathers and reduce-scatters, and protocols of these, that the
  /// transport's settings (NCCL_ALGO, NCCL_PROTO) leave to the library on its hosts, inside a node
  /// as well. Empty: all.
  std::vector<std::string> algorithms{};
  std::vector<std::string> protocols{};
  /// A plugin of the transport decides between nodes, in place of the library's own tuner.
  bool own_tuner = false;
};
/// Catalogue folder: transports.
const yaml::Table<Transport>& yaml_table(const Transport*);

/// The numbers that the transport gives, and defaults for the others.
TransportNumbers numbers_of(const Transport& transport);
/// The key of the first number that the transport gives; empty if it gives none.
std::string first_number_of(const Transport& transport);

}  // namespace foreshard
