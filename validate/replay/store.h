/// \file
/// A small key-value store that all ranks of a job share: how communicator ids are exchanged,
/// ranks wait for each other, and the watchdog learns where the others are. Rank 0 serves it over
/// TCP (tcp_store.h), or it is a folder that all can see (file_store.h).
///
/// Keys are words joined by "/". A key is set once.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/units.h"

namespace foreshard::replay {

class Store {
 public:
  virtual ~Store() = default;

  /// \return kIo if the store is gone.
  virtual std::optional<Error> set(std::string_view key, std::string_view value) = 0;
  /// Waits until the key is set. \return kIo if the store is gone, a rank has died, or `patience`
  ///     is over (names the key and whose it is).
  virtual Result<std::string> get(std::string_view key, Seconds patience) = 0;
  /// Like get, without waiting: empty if it is not set yet.
  virtual Result<std::optional<std::string>> look(std::string_view key) = 0;
};

/// Waits until all `ranks` called it with the same name.
std::optional<Error> barrier(Store& store, std::string_view name, std::int32_t rank,
                             std::int32_t ranks, Seconds patience);

}  // namespace foreshard::replay
