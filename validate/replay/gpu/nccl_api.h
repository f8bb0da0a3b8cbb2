/// \file
/// NCCL's functions, loaded at run time.
#pragma once

#include <nccl.h>
#include <string>

#include "base/result.h"

#include "validate/replay/gpu/library.h"

namespace foreshard::replay::gpu {

/// The oldest NCCL with which this program runs: 2.18, of 2023 (communicators are created with a
/// configuration).
constexpr int kOldestNccl = 21800;

struct NcclApi {
  std::string path{};  ///< Path of the library.
  int version = 0;     ///< Code from ncclGetVersion: 22809 is 2.28.9.

  decltype(&ncclGetErrorString) get_error_string = nullptr;
  decltype(&ncclGetLastError) get_last_error = nullptr;
  decltype(&ncclGetUniqueId) get_unique_id = nullptr;
  decltype(&ncclCommInitRankConfig) comm_init = nullptr;
  decltype(&ncclCommGetAsyncError) comm_state = nullptr;
  decltype(&ncclCommFinalize) comm_finalize = nullptr;
  decltype(&ncclCommDestroy) comm_destroy = nullptr;
  decltype(&ncclCommAbort) comm_abort = nullptr;
  decltype(&ncclGroupStart) group_start = nullptr;
  decltype(&ncclGroupEnd) group_end = nullptr;
  decltype(&ncclAllReduce) all_reduce = nullptr;
  decltype(&ncclAllGather) all_gather = nullptr;
  decltype(&ncclReduceScatter) reduce_scatter = nullptr;
  decltype(&ncclBroadcast) broadcast = nullptr;
  decltype(&ncclSend) send = nullptr;
  decltype(&ncclRecv) receive = nullptr;
};

/// \return kUnsupported: "NCCL is not here ...", "NCCL 2.17 is too old: 2.18 is needed".
Result<NcclApi> load_nccl();

/// The version of a code: "2.28.9" for 22809.
std::string nccl_version_text(int version);

}  // namespace foreshard::replay::gpu
