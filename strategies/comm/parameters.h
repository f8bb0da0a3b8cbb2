/// \file
/// Costs that the communication library adds to the links, as data (configs/communication/*.yaml):
/// start-up times, protocol efficiencies and the SMs that it occupies. One set holds for every
/// cluster.
///
/// The time of one (algorithm, protocol) form on idle links is
///
///     base + network_base, if it has a hop over the network
///          + sum over the hops of its critical path (wire latency + hop[kind])
///          + bytes / min(rate cap, min over links of efficiency[kind] x bandwidth / load)
///
/// where a link's bandwidth is what long transfers reach on it (topology/node_config.h). The
/// bandwidth of NVLink is multiplied by h / (h + turnaround), h = hops of the critical path, unless
/// copies are hidden (FormParameters::turnaround). An operation of few bytes opens only some
/// channels, each with a rate of its own: n channels are as fast as the slowest link or as n
/// channel rates, whichever is less.
///
/// Source: the structure follows NCCL's tuner (NVIDIA/nccl, src/graph/tuning.cc, v2.28); each
/// number states its own source.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"
#include "base/yaml/ref.h"
#include "base/yaml/table.h"

#include "strategies/comm/nccl/tables.h"
#include "topology/transport.h"

namespace foreshard::comm {

/// How a receiver learns that a message has arrived. LL: a flag beside every 4 bytes of data, so
/// half of the wire, but no fence; LL128: a flag in every 128 bytes; Simple: data, fence, then a
/// flag.
enum class Protocol : std::uint8_t { kNone, kLl, kLl128, kSimple };

const yaml::Names<Protocol>& yaml_names(const Protocol*);
/// "LL", "LL128", "Simple"; "" for kNone. Static storage.
std::string_view name_of(Protocol protocol);

/// Latency of one hop between two devices on top of the wire (flag, fence, proxy), by the kind of
/// link that it crosses.
struct HopLatency {
  Seconds nvlink;
  /// A hop over PCIe or between sockets, without a network adapter. Empty where the algorithm has
  /// no such hop.
  std::optional<Seconds> pcie{};
  Seconds network;
  /// A hop over the network of a message without bytes in an all-to-all: the proxy's step alone.
  /// Empty: as `network`.
  std::optional<Seconds> network_empty{};
};
const yaml::Table<HopLatency>& yaml_table(const HopLatency*);

/// Fraction of a link's payload rate that is left to the data.
struct Efficiency {
  double nvlink = 1;
  double pcie = 1;
  double network = 1;
};
const yaml::Table<Efficiency>& yaml_table(const Efficiency*);

/// One (algorithm, protocol) pair.
struct FormParameters {
  std::string algorithm;  ///< A name in registry.cc, for example "ring".
  Protocol protocol = Protocol::kNone;
  Seconds base;  ///< Launch, and synchronisation of the members.
  /// Added once if the operation crosses the network: the host's thread that talks to the adapters
  /// sleeps between operations, is woken and posts the first messages.
  Seconds network_base;
  HopLatency hop;
  Efficiency efficiency;
  /// CTAs (each occupies one SM) of an operation inside a node. Empty: 1, or the algorithm is for
  /// several nodes only.
  std::optional<std::int64_t> channels{};
  std::int64_t network_channels = 1;  ///< CTAs of an operation that crosses the network.
  /// Most that one channel moves where it crosses the network. Infinite: no limit of its own.
  BytesPerSecond network_channel_rate =
      BytesPerSecond::from_base(std::numeric_limits<double>::infinity());
  /// Most that one channel moves inside a node: the bytes that its threads load, send and store,
  /// whatever the link. In an all-to-all these include the bytes that a member keeps, which its
  /// channels copy as well. Infinite: no limit.
  BytesPerSecond channel_rate = BytesPerSecond::from_base(std::numeric_limits<double>::infinity());
  /// Most that a device sends over PCIe where GPUs of one host talk across its root complex
  /// (through host memory, or peer to peer between switches), whatever the links. It is a rate and
  /// not a fraction of the link: 23 to 26 GB/s on hosts of PCIe 4.0 and 5.0 alike. Infinite: no
  /// limit.
  BytesPerSecond host_rate = BytesPerSecond::from_base(std::numeric_limits<double>::infinity());
  /// Bytes that each channel must get before another channel is opened. NCCL: threads x bytes per
  /// thread of the protocol, at least 16 KiB (src/enqueue.cc).
  Bytes channel_bytes;
  /// Largest message for which this protocol is used at all. Infinite: no limit.
  Bytes largest_message = Bytes::from_base(std::numeric_limits<double>::infinity());
  /// Largest chunk of a pipelined algorithm (chain, tree); for an all-to-all, the bytes that all
  /// channels have under way at a time. NCCL: 512 KiB per channel over NVLink (src/init.cc).
  Bytes chunk;
  /// Copies that a member makes within itself before its first and after its last hop, counted in
  /// messages: with h hops in a row its NVLinks are busy for h / (h + turnaround) of the time. For
  /// an all-to-all or exchange whose `chunk` is given: chunk times over NVLink after the last chunk
  /// (the other copies overlap with arrivals). For NVLS with more than 8 heads: rounds of chunks
  /// that fill the pipeline (nvls.cc). Not modelled: the copies of a single transfer (`direct`),
  /// and copies beside other links, which are so much slower than memory that they hide the copies.
  double turnaround = 0;
  /// Generations that the members' device types may have ("Hopper"; generation_of). Empty: any.
  std::vector<std::string> architectures;
  /// Operations that the form is for, by name ("all_reduce"). Empty: all that the algorithm does.
  std::vector<std::string> operations{};
  /// Used only if an AlgorithmOverride names its algorithm: NCCL does not have it.
  bool on_request = false;
  std::string source;
  yaml::Evidence evidence = yaml::Evidence::kUser;
};
const yaml::Table<FormParameters>& yaml_table(const FormParameters*);
/// Whether `later` is never used because `earlier`, which precedes it in Parameters::forms, is for
/// all of its devices and operations.
bool hides(const FormParameters& earlier, const FormParameters& later);

/// The rule that decides among the forms of an operation.
enum class TunerKind : std::uint8_t {
  kFastest,  ///< The form with the least time predicted here.
  /// The form with the least of NCCL's own estimates (nccl/estimate.h), among the forms that NCCL
  /// enables; its time is predicted here.
  kNccl,
  /// Between nodes: the algorithm that NCCL's own estimates prefer, with the protocol that is
  /// fastest here. The fastest form, as kFastest, inside a node, among devices without a compute
  /// capability, and where a plugin decides in NCCL's place (Transport::own_tuner).
  kBetweenNodes,
};
const yaml::Names<TunerKind>& yaml_names(const TunerKind*);

/// The form that some operations must use, whatever the tuner would choose (R4.8). Ranges include
/// their ends.
struct AlgorithmOverride {
  std::string operation;  ///< "all_reduce", "all_gather" ...
  std::optional<Bytes> from_bytes;
  std::optional<Bytes> to_bytes;
  std::optional<std::int64_t> from_ranks;
  std::optional<std::int64_t> to_ranks;
  std::optional<std::int64_t> from_nodes;
  std::optional<std::int64_t> to_nodes;
  std::string algorithm;                 ///< A name in registry.cc; it must do the operation.
  std::optional<Protocol> protocol;      ///< Default: the tuner's, among the algorithm's protocols.
  std::optional<std::int64_t> channels;  ///< Default: the form's.
};
const yaml::Table<AlgorithmOverride>& yaml_table(const AlgorithmOverride*);
/// A description of what is wrong with a choice, whatever the cluster; empty if nothing is.
std::string fault_in(const AlgorithmOverride& choice);

/// A measured operation that ran alone on a group of `ranks` ranks. Its time replaces the time of
/// whatever form is chosen.
struct MeasuredCollective {
  std::string operation;  ///< "all_reduce", "all_gather" ...; "send" for both ends of a transfer.
  Bytes bytes;  ///< Counted as Programs count them; operations within 0.1 % of it get the time.
  std::int64_t ranks = 0;
  std::optional<std::int64_t> nodes{};  ///< Number of nodes that the ranks are on. Empty: any.
  Seconds time;                         ///< Invariant: > 0.
};

struct Parameters {
  std::string name;
  /// For each algorithm and protocol, the first form whose `architectures` include all members' is
  /// used. No form hides a later one. Ties between forms of different protocols go to the earlier
  /// one.
  std::vector<FormParameters> forms;
  TunerKind tuner = TunerKind::kFastest;
  std::vector<AlgorithmOverride>
      choices{};  ///< The first one that applies to an operation decides.
  std::optional<yaml::Ref<nccl::Tables>> nccl{};  ///< Needed by tuners other than kFastest.
  /// This library's numbers for the transports of these names, which give none themselves
  /// (configs/transports/).
  std::vector<TransportNumbers> transports{};
  std::vector<MeasuredCollective> measured{};  ///< Not in YAML; the first match counts.
};
/// The numbers that `parameters.transports` have for this transport's name; null if there are none.
const TransportNumbers* own_numbers(const Parameters& parameters, const Transport& transport);

/// A number of a transport that would have no effect.
struct ReplacedNumber {
  std::string key;  ///< The transport's key: "latency".
  std::string message;
  std::string help;
};
/// \return the first number that `transport` gives although `parameters` have their own, if any.
std::optional<ReplacedNumber> replaced_number(const Parameters& parameters,
                                              const Transport& transport);

/// Catalogue folder: communication.
const yaml::Table<Parameters>& yaml_table(const Parameters*);

/// Links alone: no start-up time, every protocol as fast as the wire. This is the textbook's
/// alpha-beta model, for tests and for comparison. It enables the textbook's algorithms; the others
/// are on request.
Parameters ideal_parameters();

}  // namespace foreshard::comm
