/// \file
/// A rank's NCCL communicators, and the operations on them.
///
/// Communicators are created in the plan's order. Their ids are exchanged through the store under
/// "nccl/<number>", set by the first member. One more communicator, of all ranks, lets all ranks
/// begin a step together. Communicators are blocking, because on non-blocking ones NCCL starts a
/// thread for each call, which would distort the measurement. The watchdog deals with a peer that
/// never comes; an operation that never ends is aborted.
#pragma once

#include <cuda_runtime_api.h>
#include <memory>
#include <string>
#include <vector>

#include "base/result.h"

#include "validate/replay/gpu/nccl_api.h"
#include "validate/replay/plan.h"
#include "validate/replay/store.h"
#include "validate/replay/watch.h"

namespace foreshard::replay::gpu {

class Communicators {
 public:
  /// \param shared  several ranks share the device: each tells NCCL that it is a separate host, so
  ///     that all traffic goes through this machine's sockets. (NCCL reads this from the
  ///     environment, once per process; variables that are already set are kept.)
  /// \return kUnsupported if NCCL is missing or too old; kIo if a peer or NCCL fails.
  static Result<std::unique_ptr<Communicators>> make(const RankPlan& plan, Store& store,
                                                     bool shared, Watch& watch);
  ~Communicators();
  Communicators(const Communicators&) = delete;
  Communicators& operator=(const Communicators&) = delete;

  /// Issues the instance's communication. `send` or `receive` may be null if it has no elements.
  /// \param elements  elements_of the instance.
  Status issue(std::size_t instance, const Elements& elements, const void* send, void* receive,
               cudaStream_t stream);
  /// Makes the stream wait until all ranks have called this.
  Status meet(cudaStream_t stream);
  /// A fault that NCCL has noticed in the meantime: a lost peer, a failed network.
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
