/// \file
/// A rank's NCCL communicators, and the operations on them. The process of a rank uses them to
/// replay a plan on a GPU.
///
/// Communicators are created in the plan's order. The first member of each makes its NCCL id and
/// puts it into the store under "nccl/<Communicator::number>", where the others read it. One more
/// communicator, of all ranks, lets all ranks begin a step together. Communicators are blocking,
/// because on non-blocking ones NCCL starts a thread for each call, which would distort the
/// measurement. The watchdog (watch.h) ends the wait for a peer that never comes; abort() ends
/// operations that hang.
#pragma once

#include <cuda_runtime_api.h>
#include <memory>
#include <nccl.h>
#include <string>
#include <vector>

#include "base/result.h"

#include "validate/replay/gpu/library.h"
#include "validate/replay/plan.h"
#include "validate/replay/store.h"
#include "validate/replay/watch.h"

namespace foreshard::replay::gpu {

/// The oldest NCCL that is accepted: 2.18, of 2023. Communicators are created with a configuration.
constexpr int kOldestNccl = 21800;

/// The functions of an NCCL library that was loaded at run time.
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

class Communicators {
 public:
  /// \param shared  whether several ranks share the device. Then each tells NCCL, by environment
  ///     variables, that it is a separate host, so that all traffic goes through this machine's
  ///     sockets. NCCL reads the variables once per process; those already set are kept.
  /// \return kUnsupported if NCCL is missing or too old; kIo if a peer or NCCL fails.
  static Result<std::unique_ptr<Communicators>> make(const RankPlan& plan, Store& store,
                                                     bool shared, Watch& watch);
  ~Communicators();
  Communicators(const Communicators&) = delete;
  Communicators& operator=(const Communicators&) = delete;

  /// Issues a communication on the stream. A buffer (`send`, `receive`) without elements may be
  /// null.
  /// \param instance  index of the operation in RankPlan::operations.
  /// \param elements  counts of the operation's elements, from elements_of (plan.h).
  Status issue(std::size_t instance, const Elements& elements, const void* send, void* receive,
               cudaStream_t stream);
  /// Makes the stream, not the host, wait until all ranks have called this.
  Status meet(cudaStream_t stream);
  /// An asynchronous fault that NCCL has noticed: a lost peer, a failed network. OK if there is
  /// none.
  Status fault() const;
  /// Ends all operations that are under way; nothing can be issued afterwards.
  void abort();

  /// "2.28.9 (libnccl.so.2)".
  std::string version() const;

 private:
  struct State;
  explicit Communicators(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace foreshard::replay::gpu
