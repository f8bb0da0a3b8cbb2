/// \file
/// A small key-value store that all ranks of a job share. Through it, ranks exchange communicator
/// ids and wait for each other, and the watchdog learns where other ranks are. Rank 0 serves it
/// over TCP (tcp_store.h).
///
/// Keys are words joined by "/". A key is set once. All functions may be called from several
/// threads.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/units.h"

namespace foreshard::replay {

/// Properties that all ranks of a job must share; a rank with others is refused.
struct JobKey {
  std::string options{};  ///< Version and options.
  std::string token{};    ///< Same as Identity::token.
};
/// Why `rank`, whose key is `theirs`, does not belong to rank 0's job; empty if it does.
std::string why_stranger(std::string_view rank, const JobKey& theirs, const JobKey& own);

/// Largest size of a value; larger ones are refused.
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
  /// The value, without waiting; empty if it is not set yet.
  virtual Result<std::optional<std::string>> look(std::string_view key) = 0;

  /// Announces that this rank ends early: the `get` in which other ranks wait fails, and `ended`
  /// tells them `why`.
  virtual void give_up(std::string_view why) { static_cast<void>(why); }
  /// Which rank has ended early and why: "rank 2 (node7, process 4711) ended without a word";
  /// nothing if none has. A store that cannot notice the end by itself knows it after give_up.
  virtual std::optional<std::string> ended() { return std::nullopt; }
};

/// The store of a job with a single rank: `get` of a key that is not set fails at once.
std::unique_ptr<Store> lone_store();

/// Waits until all `ranks` have called it with the same name.
/// \return kIo as for `get`; if ranks did not come within `patience`, it names the first of them.
Status barrier(Store& store, std::string_view name, std::int32_t rank, std::int32_t ranks,
               Seconds patience);

/// Name of this process for messages: "node7, process 4711".
std::string this_process();

}  // namespace foreshard::replay
