/// \file
/// A Wire in memory, for ranks that are threads or are advanced in turn by one thread. As an MPI
/// without buffers: a send is done when its receive was posted and has got the data. A receive of
/// another size than its send is an error.
#pragma once

#include <barrier>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "validate/replay/host/mpi_wire.h"

namespace foreshard::replay::host {

class Net {
 public:
  explicit Net(std::int32_t ranks)
      : ranks_(ranks), meeting_(ranks), gathered_(static_cast<std::size_t>(ranks)) {}

  std::int32_t ranks() const { return ranks_; }

  /// Changes one bit of the n-th message from now on (0: the next).
  void spoil_message(std::int64_t n) { spoilt_ = n; }
  /// Whether messages are under way or were never received.
  bool silent() const { return sends_.empty() && receives_.empty(); }
  std::int64_t messages() const { return delivered_; }

 private:
  friend class MemoryWire;
  using Key = std::tuple<std::int32_t, std::int32_t, std::int64_t>;  // from, to, channel
  struct Sent {
    const std::byte* data;
    std::size_t size;
    std::shared_ptr<bool> done;
  };
  struct Wanted {
    std::byte* data;
    std::size_t size;
    std::shared_ptr<bool> done;
  };

  std::int32_t ranks_;
  std::mutex mutex_;
  std::barrier<> meeting_;
  std::vector<double> gathered_;
  std::map<Key, std::deque<Sent>> sends_;
  std::map<Key, std::deque<Wanted>> receives_;
  std::int64_t delivered_ = 0;
  std::int64_t spoilt_ = -1;
  std::string fault_;
};

class MemoryWire final : public MpiWire {
 public:
  MemoryWire(Net& net, std::int32_t rank) : net_(net), rank_(rank) {}

  Status join(std::int32_t rank, std::int64_t ranks) override;
  std::int32_t local_rank() const override { return rank_; }
  std::int32_t local_ranks() const override { return net_.ranks_; }
  Result<std::vector<double>> gather_on_host(double mine, Watch& watch) override;
  Status barrier(Watch& watch) override;
  Result<double> common_beginning(Watch& watch) override;
  std::string version() const override { return "memory"; }

  Result<Ticket> send(std::int32_t to, std::int64_t channel,
                      std::span<const std::byte> data) override;
  Result<Ticket> receive(std::int32_t from, std::int64_t channel,
                         std::span<std::byte> data) override;
  Result<bool> done(Ticket ticket) override;

 private:
  Ticket keep(std::shared_ptr<bool> done);
  void match(const Net::Key& key);

  Net& net_;
  std::int32_t rank_;
  std::vector<std::shared_ptr<bool>> tickets_;
};

}  // namespace foreshard::replay::host
