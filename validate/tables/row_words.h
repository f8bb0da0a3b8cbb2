/// \file
/// Interprets the words in a row of collectives: the network adapters and their transport, the
/// algorithms that were forced or switched off, the time that the benchmark itself takes. Used by
/// collective_rows.cc and collectives.cc, and by `foreshard calibrate`.
///
///     "EFA 32x100G per node"                 32 adapters of 100 Gbit/s per node
///     "RoCE 1x400G per GPU"                  one adapter per GPU; transport roce
///     "NVLS off", "Tree", "Ring/LL128"       (algo_hint) restricts algorithms and protocols, as
///                                            NCCL_ALGO and NCCL_PROTO do
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace foreshard::accuracy {

/// Adapters in the form "NxRG" (N adapters of R Gbit/s), per node unless "per GPU" follows.
struct StatedAdapters {
  std::int64_t count = 1;
  BytesPerSecond rate;   ///< Rate of one adapter.
  bool per_gpu = false;  ///< Whether `count` is per GPU rather than per node.
};
/// The adapters in the column inter_net; nothing if the column states none in that form.
std::optional<StatedAdapters> stated_adapters(std::string_view network);

/// The transport (configs/transports/) that `words` name; empty if they name none. EFA is "efa"
/// (libfabric's SENDRECV) for devices of the generations Volta and Ampere, and "efa-rdma" for all
/// others (configs/transports/efa*.yaml).
std::string stated_transport(std::string_view words, std::string_view generation);

/// Whether the GPUs of a node communicate over PCIe alone, without NVLink.
bool stated_no_nvlink(std::string_view intra_link);
/// For GPUs without NVLink: whether they reach each other's memory (true), or all traffic goes
/// through host memory (false); empty if the row does not say.
std::optional<bool> stated_peer_to_peer(std::string_view intra_link);

/// The algorithms and protocols among which the library could choose in a row, by the names in
/// FormParameters.
struct StatedForms {
  std::vector<std::string> algorithms{};  ///< Empty: all.
  std::vector<std::string> protocols{};   ///< Empty: all.
  bool nvls = true;                       ///< False: neither nvls nor nvls_tree.
  auto operator<=>(const StatedForms&) const = default;
};
/// The forms that a row leaves to the library.
/// \param hint   the row's words about the algorithm. A default or a tuner's choice forces nothing.
/// \param notes  the row's notes, which only count if they say that NVLS was off.
StatedForms stated_forms(std::string_view hint, std::string_view notes);

/// The time that a benchmark measures besides the operation. Loops in PyTorch that time whole
/// calls, rather than kernels in a profile, include the overhead of a call; for all others it is 0.
Seconds stated_overhead(std::string_view notes);

}  // namespace foreshard::accuracy
