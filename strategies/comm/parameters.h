/// \file
/// What the communication library adds to the links: start-up times, protocol efficiencies and the
/// SMs that it takes, as data (configs/communication/*.yaml). One set holds for every cluster.
///
/// The time of one (algorithm, protocol) form on idle links is
///
///     base + network_base, if it has a hop over the network
///          + sum over the hops of its critical path (wire latency + hop[kind])
///          + bytes / min(rate cap, min over links of efficiency[kind] x bandwidth / load)
///
/// where a link's bandwidth is what long transfers reach on it (topology/node_config.h), and that
/// of NVLink is multiplied by h / (h + turnaround), h = hops of the critical path, unless copies
/// are hidden (FormParameters::turnaround). Of few bytes only some channels are open, each with a
/// rate of its own: n of them are as fast as the slowest link or as n channel rates, whichever is
/// less.
///
/// Source: the structure is that of NCCL's tuner (NVIDIA/nccl, src/graph/tuning.cc, v2.28); the
/// numbers say theirs.
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

/// Of one hop between two devices, on top of the wire: flag, fence, proxy, by what it crosses.
struct HopLatency {
  Seconds nvlink;
  /// PCIe or between sockets, without a network adapter. Empty where the algorithm has no such hop.
  std::optional<Seconds> pcie{};
  Seconds network;
  /// Likewise, of a message without bytes in an all-to-all: the proxy's step alone. Empty: as
  /// `network`.
  std::optional<Seconds> network_empty{};
};
const yaml::Table<HopLatency>& yaml_table(const HopLatency*);

/// Part of a link's payload rate that is left to the data.
struct Efficiency {
  double nvlink = 1;
  double pcie = 1;
  double network = 1;
};
const yaml::Table<Efficiency>& yaml_table(const Efficiency*);

/// One (algorithm, protocol) pair.
struct FormParameters {
  std::string algorithm;  ///< As in registry.cc, for example "ring".
  Protocol protocol = Protocol::kNone;
  Seconds base;  ///< Launch and synchronisation of the members.
  /// On top, of an operation that crosses the network, once: the host's thread that talks to the
  /// adapters sleeps between operations, is woken and posts the first messages.
  Seconds network_base;
  HopLatency hop;
  Efficiency efficiency;
  /// CTAs (each takes one SM) of an operation inside a node. Empty: 1, or the algorithm is for
  /// several nodes only.
  std::optional<std::int64_t> channels{};
  std::int64_t network_channels = 1;  ///< Likewise, where it crosses the network.
  /// What one channel moves at most where it crosses the network. Infinite: no limit of its own.
  BytesPerSecond network_channel_rate =
      BytesPerSecond::from_base(std::numeric_limits<double>::infinity());
  /// Likewise, inside a node: what its threads load, send and store, whatever the link. Of an
  /// all-to-all also what a member keeps, which its channels copy as well.
  BytesPerSecond channel_rate = BytesPerSecond::from_base(std::numeric_limits<double>::infinity());
  /// What a device sends at most over PCIe where GPUs of one host talk across its root complex
  /// (through host memory, or peer to peer between switches), whatever the links. A rate and not a
  /// part of the link: on hosts of PCIe 4.0 and 5.0 alike 23 to 26 GB/s. Infinite: no limit.
  BytesPerSecond host_rate = BytesPerSecond::from_base(std::numeric_limits<double>::infinity());
  /// What a channel takes at least of an operation before another one is opened. NCCL: threads x
  /// bytes per thread of the protocol, at least 16 KiB (src/enqueue.cc).
  Bytes channel_bytes;
  /// Largest message for which this protocol is taken at all. Infinite: no limit.
  Bytes largest_message = Bytes::from_base(std::numeric_limits<double>::infinity());
  /// Largest chunk of a pipelined algorithm (chain, tree), or that all channels of an all-to-all
  /// have under way at a time. NCCL: 512 KiB per channel over NVLink (src/init.cc).
  Bytes chunk;
  /// What a member copies within itself, before its first and after its last hop, in messages: of h
  /// hops in a row its NVLinks are busy for h / (h + turnaround) of the time. Of an all-to-all or
  /// exchange whose chunks are given, chunks over NVLink after the last one: the others arrive
  /// meanwhile. Of NVLS with more than 8 heads, rounds of chunks that fill the pipeline (nvls.cc).
  /// Not modelled: that of a single transfer (`direct`), and copies beside other links, which are
  /// slow beside the memory.
  double turnaround = 0;
  /// Of the members' device types: their generations ("Hopper"; generation_of). Empty: any.
  std::vector<std::string> architectures;
  /// Operations that it is for, by name ("all_reduce"). Empty: all that the algorithm does.
  std::vector<std::string> operations{};
  /// Left alone unless a Choice names its algorithm: NCCL does not have it.
  bool on_request = false;
  std::string source;
  yaml::Evidence evidence = yaml::Evidence::kUser;
};
const yaml::Table<FormParameters>& yaml_table(const FormParameters*);
/// Whether no operation takes `later` because `earlier`, which stands before it in
/// Parameters::forms, is for all of its devices and operations.
bool hides(const FormParameters& earlier, const FormParameters& later);

/// What decides among the forms of an operation.
enum class TunerKind : std::uint8_t {
  kFastest,  ///< The least of our times.
  kNccl,     ///< NCCL's own estimates (nccl/estimate.h), of what it enables; our time of that form.
  /// Between nodes, of the algorithm that NCCL's own estimates prefer, the protocol of least time.
  /// The least of our times inside a node, among devices without a compute capability, and where a
  /// plugin decides in NCCL's place (Transport::own_tuner).
  kBetweenNodes,
};
const yaml::Names<TunerKind>& yaml_names(const TunerKind*);

/// What some operations must use, whatever the tuner would choose (R4.8). Ranges include their
/// ends.
struct Choice {
  std::string operation;  ///< "all_reduce", "all_gather" ...
  std::optional<Bytes> from_bytes;
  std::optional<Bytes> to_bytes;
  std::optional<std::int64_t> from_ranks;
  std::optional<std::int64_t> to_ranks;
  std::optional<std::int64_t> from_nodes;
  std::optional<std::int64_t> to_nodes;
  std::string algorithm;                 ///< As in registry.cc; it must do the operation.
  std::optional<Protocol> protocol;      ///< Default: the tuner's, among those of the algorithm.
  std::optional<std::int64_t> channels;  ///< Default: the form's.
};
const yaml::Table<Choice>& yaml_table(const Choice*);
/// What is wrong with a choice, whatever the cluster; empty if nothing is.
std::string fault_in(const Choice& choice);

/// An operation that was measured, alone on a group of so many ranks: its time takes the place of
/// that of whatever form is taken.
struct MeasuredCollective {
  std::string operation;  ///< "all_reduce", "all_gather" ...; "send" of both ends of a transfer.
  Bytes bytes;            ///< As Programs count them; operations within 0.1 % of it take the time.
  std::int64_t ranks = 0;
  std::optional<std::int64_t> nodes{};  ///< That they lie on. Empty: any.
  Seconds time;                         ///< Invariant: > 0.
};

struct Parameters {
  std::string name;
  /// For each algorithm and protocol, the first one whose `architectures` hold for all members.
  /// None hides a later one.
  /// Ties between forms of different protocols go to the earlier one.
  std::vector<FormParameters> forms;
  TunerKind tuner = TunerKind::kFastest;
  std::vector<Choice> choices{};  ///< The first that holds for an operation decides.
  std::optional<yaml::Ref<nccl::Tables>> nccl{};  ///< Needed by tuners other than kFastest.
  /// Numbers of this library on the transports of these names, which give none themselves
  /// (configs/transports/).
  std::vector<TransportNumbers> transports{};
  std::vector<MeasuredCollective> measured{};  ///< Not in YAML; the first that fits counts.
};
/// Those of `transports` with this name; null if there are none.
const TransportNumbers* own_numbers(const Parameters& parameters, const Transport& transport);

/// A number of a transport that would change nothing.
struct ReplacedNumber {
  std::string key;  ///< Of the transport: "latency".
  std::string message;
  std::string help;
};
/// \return the first number that `transport` gives though `parameters` have their own, if any.
std::optional<ReplacedNumber> replaced_number(const Parameters& parameters,
                                              const Transport& transport);

/// Catalogue folder: communication.
const yaml::Table<Parameters>& yaml_table(const Parameters*);

/// Links alone: no start-up time, every protocol as fast as the wire. The textbook's alpha-beta
/// model, for tests and for comparison. Of the algorithms those of textbooks; the others on
/// request.
Parameters ideal_parameters();

}  // namespace foreshard::comm
