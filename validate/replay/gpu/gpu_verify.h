/// \file
/// What `verify` does with each communication: fills what is sent with pattern.h's numbers, runs
/// the operation, checks what came out, all on the operation's stream, so that the order of a step
/// is that of a real one.
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
  /// \pre all that was issued is done.
  Result<Verification> result();

 private:
  // One check: which instance's, of how many elements, from which on.
  struct Item {
    std::size_t instance = 0;
    std::int64_t first = 0;
    std::int64_t count = 0;
  };
  // Which numbers belong into a piece of a buffer.
  struct Piece {
    std::int64_t first = 0;
    std::int64_t count = 0;
    std::int32_t rank = 0;  // of `given`
    Expected expected{};    // of `expected`
  };
  std::vector<Piece> given_pieces(std::size_t instance, const Elements& elements) const;
  std::vector<Piece> expected_pieces(std::size_t instance, const Elements& elements) const;
  std::vector<Piece> exchange_pieces(std::size_t instance, bool outgoing) const;

  const RankPlan& plan_;
  Communicators& communicators_;
  const std::vector<cudaStream_t>& streams_;
  std::vector<std::unique_ptr<DeviceMemory>> send_;     // by stream
  std::vector<std::unique_ptr<DeviceMemory>> receive_;  // by stream
  DeviceMemory members_;                                // of all communicators, one after another
  std::vector<std::size_t> first_member_;               // by communicator
  DeviceMemory results_;
  std::vector<Item> items_;
  std::size_t most_items_ = 0;
  std::int64_t operations_ = 0;
};

}  // namespace foreshard::replay::gpu
