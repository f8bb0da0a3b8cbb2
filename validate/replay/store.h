/// \file
/// A small key-value store that all ranks of a job share: how communicator ids are exchanged,
/// ranks wait for each other, and the watchdog learns where the others are. Rank 0 serves it over
/// TCP (tcp_store.h).
///
/// Keys are words joined by "/". A key is set once. All of it may be called from several threads.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/units.h"

namespace foreshard::replay {

/// What all ranks of a job must have alike; who has not is refused.
struct JobKey {
  std::string options{};  ///< Version and options.
  std::string token{};    ///< As Identity::token.
};
/// Why `rank`, whose key is `theirs`, does not belong to rank 0's job; empty where it does.
std::string why_stranger(std::string_view rank, const JobKey& theirs, const JobKey& own);

/// Bytes of a value; larger ones are refused.
inline constexpr Bytes kLargestValue = 256_MiB;

class Store {
 public:
  virtual ~Store() = default;

  /// \return kIo if the store is gone.
  virtual Status set(std::string_view key, std::string_view value) = 0;
  /// Waits until the key is set.
  /// \return kIo if the store is gone, a rank has ended early, or
  ///     `patience` is over (names the key).
  virtual Result<std::string> get(std::string_view key, Seconds patience) = 0;
  /// Like get, without waiting: empty if it is not set yet.
  virtual Result<std::optional<std::string>> look(std::string_view key) = 0;

  /// This rank ends early: the `get` that others wait in, and `ended`, say so with `why`.
  virtual void give_up(std::string_view why) { static_cast<void>(why); }
  /// That a rank has ended early, which and why: "rank 2 (node7, process 4711) ended without a
  /// word". At once where the store can notice it, else when it gave up.
  virtual std::optional<std::string> ended() { return std::nullopt; }
};

/// The store of a job of one rank: nobody else is there, so `get` of a key that is not set fails at
/// once.
std::unique_ptr<Store> lone_store();

/// Waits until all `ranks` called it with the same name.
/// \return kIo as of get; where ranks did not come within `patience`, names the first of them.
Status barrier(Store& store, std::string_view name, std::int32_t rank, std::int32_t ranks,
               Seconds patience);

/// "node7, process 4711": this process, for messages about it.
std::string this_process();

}  // namespace foreshard::replay
