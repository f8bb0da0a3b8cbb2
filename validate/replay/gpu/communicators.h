/// \file
/// A rank's NCCL communicators, and the operations on them.
///
/// Communicators are made in the plan's order; their ids go through the store as "nccl/<number>",
/// set by the first member. One more, of all ranks, lets all begin a step together. They block:
/// NCCL starts a thread for each call on those that do not, which would be measured. A peer that
/// never comes is the watchdog's matter; an operation that never ends is aborted.
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
  /// \param shared  several ranks share the device: each tells NCCL that it is a host of its own,
  ///     so that all goes through sockets of this machine. (NCCL reads that from the environment,
  ///     once for each process; what is already set there stays.)
  /// \return kUnsupported if NCCL is missing or too old; kIo if a peer or NCCL fails.
  static Result<std::unique_ptr<Communicators>> make(const RankPlan& plan, Store& store,
                                                     bool shared, Watch& watch);
  ~Communicators();
  Communicators(const Communicators&) = delete;
  Communicators& operator=(const Communicators&) = delete;

  /// Issues the instance's communication. `receive` may be null where elements_of says 0, likewise
  /// `send`.
  /// \param elements  elements_of the instance.
  Status issue(std::size_t instance, const Elements& elements, const void* send, void* receive,
               cudaStream_t stream);
  /// The stream goes on when all ranks have come here.
  Status meet(cudaStream_t stream);
  /// What NCCL noticed meanwhile: a peer that is gone, a network that failed.
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
