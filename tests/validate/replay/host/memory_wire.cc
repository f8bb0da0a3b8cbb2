#include "tests/validate/replay/host/memory_wire.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

namespace foreshard::replay::host {

Status MemoryWire::join(std::int32_t /*rank*/, std::int64_t ranks) {
  if (ranks == net_.ranks_) return {};
  return Error{Error::Code::kInvalidInput, "another number of ranks"};
}

Result<std::vector<double>> MemoryWire::gather_on_host(double mine, Watch& /*watch*/) {
  net_.gathered_[static_cast<std::size_t>(rank_)] = mine;
  net_.meeting_.arrive_and_wait();
  auto all = net_.gathered_;
  net_.meeting_.arrive_and_wait();
  return all;
}

Status MemoryWire::barrier(Watch& /*watch*/) {
  net_.meeting_.arrive_and_wait();
  return {};
}

Result<double> MemoryWire::common_beginning(Watch& watch) {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  FORESHARD_ASSIGN(const auto all,
                   gather_on_host(std::chrono::duration<double>(now).count(), watch));
  return *std::max_element(all.begin(), all.end()) + 1e-4;
}

Wire::Ticket MemoryWire::keep(std::shared_ptr<bool> done) {
  tickets_.push_back(std::move(done));
  return static_cast<Ticket>(tickets_.size()) - 1;
}

Result<Wire::Ticket> MemoryWire::send(std::int32_t to, std::int64_t channel,
                                      std::span<const std::byte> data) {
  const std::scoped_lock lock(net_.mutex_);
  const Net::Key key{rank_, to, channel};
  auto done = std::make_shared<bool>(false);
  net_.sends_[key].push_back({data.data(), data.size(), done});
  match(key);
  return keep(std::move(done));
}

Result<Wire::Ticket> MemoryWire::receive(std::int32_t from, std::int64_t channel,
                                         std::span<std::byte> data) {
  const std::scoped_lock lock(net_.mutex_);
  const Net::Key key{from, rank_, channel};
  auto done = std::make_shared<bool>(false);
  net_.receives_[key].push_back({data.data(), data.size(), done});
  match(key);
  return keep(std::move(done));
}

void MemoryWire::match(const Net::Key& key) {
  const auto sends = net_.sends_.find(key);
  const auto receives = net_.receives_.find(key);
  if (sends == net_.sends_.end() || receives == net_.receives_.end()) return;
  const Net::Sent sent = sends->second.front();
  const Net::Wanted wanted = receives->second.front();
  if (sent.size != wanted.size)
    net_.fault_ = "a message of " + std::to_string(sent.size) + " bytes meets a receive of " +
                  std::to_string(wanted.size);
  else if (sent.size > 0)
    std::memcpy(wanted.data, sent.data, sent.size);
  if (net_.delivered_++ == net_.spoilt_ && wanted.size > 0) wanted.data[0] ^= std::byte{0x41};
  *sent.done = true;
  *wanted.done = true;
  sends->second.pop_front();
  receives->second.pop_front();
  if (sends->second.empty()) net_.sends_.erase(sends);
  if (receives->second.empty()) net_.receives_.erase(receives);
}

Result<bool> MemoryWire::done(Ticket ticket) {
  const std::scoped_lock lock(net_.mutex_);
  if (!net_.fault_.empty()) return Error{Error::Code::kIo, net_.fault_};
  return *tickets_[static_cast<std::size_t>(ticket)];
}

}  // namespace foreshard::replay::host
