/// \file
/// What `verify` does with each communication: it fills the send buffer with pattern.h's numbers,
/// runs the operation and checks the receive buffer, all on the operation's stream, so that
/// operations keep the order of a real step.
#pragma once

#include <memory>
#include <vector>

#include "validate/replay/gpu/gpu_executor.h"
#include "validate/replay/gpu/utility.h"

namespace foreshard::replay::gpu {

class GpuExecutor::Inspector {
 public:
  Inspector(const RankPlan& plan, Communicators& communicators,
            const std::vector<cudaStream_t>& streams)
      : plan_(plan), communicators_(communicators), streams_(streams) {}

  /// \return kInfeasible if there is no memory for the messages.
  Status prepare();
  Status communicate(std::size_t instance, const Elements& elements, cudaStream_t stream);
  /// \pre everything that was issued has finished.
  Result<Verification> result();

 private:
  // One check of `count` elements of an instance's receive buffer, from `first` on.
  struct Item {
    std::size_t instance = 0;
    std::int64_t first = 0;
    std::int64_t count = 0;
  };
  // The numbers that belong into a piece of a buffer.
  struct Piece {
    std::int64_t first = 0;
    std::int64_t count = 0;
    std::int32_t rank = 0;  // send side: the rank of pattern.h's `sent`
    Expected expected{};    // receive side; `base` also on the send side
  };
  std::vector<Piece> given_pieces(std::size_t instance, const Elements& elements) const;
  std::vector<Piece> expected_pieces(std::size_t instance, const Elements& elements) const;
  std::vector<Piece> exchange_pieces(std::size_t instance, bool outgoing) const;

  const RankPlan& plan_;
  Communicators& communicators_;
  const std::vector<cudaStream_t>& streams_;
  std::vector<std::unique_ptr<DeviceMemory>> send_;     // one per stream
  std::vector<std::unique_ptr<DeviceMemory>> receive_;  // one per stream
  DeviceMemory members_;                   // members of all communicators, concatenated
  std::vector<std::size_t> first_member_;  // communicator -> index into members_
  DeviceMemory results_;
  std::vector<Item> items_;
  std::size_t most_items_ = 0;
  std::int64_t operations_ = 0;
};

}  // namespace foreshard::replay::gpu
