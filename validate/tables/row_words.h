/// \file
/// What the words of a row of collectives say of how it was measured: the adapters and who drives
/// them, the algorithms that were forced or left out, what the benchmark itself takes.
///
///     "EFA 32x100G per node"                 32 adapters of 100 Gbit/s a node
///     "RoCE 1x400G per GPU"                  one for each GPU; transport roce
///     "NVLS off", "Tree", "Ring/LL128"       (algo_hint) what NCCL_ALGO and NCCL_PROTO leave
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/units.h"

namespace foreshard::accuracy {

/// Adapters: "NxRG", of a node unless "per GPU" follows.
struct StatedAdapters {
  std::int64_t count = 1;
  BytesPerSecond rate;
  bool per_gpu = false;
};
std::optional<StatedAdapters> stated_adapters(std::string_view network);

/// The transport (configs/transports/) that `words` name, of devices of this generation; empty if
/// they name none. EFA of hosts before Hopper runs libfabric's SENDRECV, later ones RDMA (as
/// configs/transports/efa*.yaml).
std::string stated_transport(std::string_view words, std::string_view generation);

/// Whether GPUs talk over PCIe alone.
bool stated_no_nvlink(std::string_view intra_link);
/// Over PCIe alone: whether GPUs reach each other's memory (true) or all goes through that of the
/// host; empty if nothing is said.
std::optional<bool> stated_peer_to_peer(std::string_view intra_link);

/// What a row leaves the library to choose from, as FormParameters name it. Empty: all.
struct StatedForms {
  std::vector<std::string> algorithms{};
  std::vector<std::string> protocols{};
  bool nvls = true;  ///< False: neither nvls nor nvls_tree.
  auto operator<=>(const StatedForms&) const = default;
};
/// \param hint   what the row says of the algorithm. A default or a tuner's choice forces nothing.
/// \param notes  only whether NVLS was off.
StatedForms stated_forms(std::string_view hint, std::string_view notes);

/// What a benchmark's clock sees besides the operation: loops of PyTorch that time whole calls (not
/// kernels in a profile) see what a call of it takes.
Seconds stated_overhead(std::string_view notes);

}  // namespace foreshard::accuracy
