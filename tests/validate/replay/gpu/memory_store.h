/// \file
/// A store between threads of one process.
#pragma once

#include <chrono>
#include <condition_variable>
#include <map>
#include <mutex>
#include <string>

#include "validate/replay/store.h"

namespace foreshard::replay::gpu {

class MemoryStore final : public Store {
 public:
  Status set(std::string_view key, std::string_view value) override {
    const std::lock_guard guard(mutex_);
    values_.emplace(key, value);
    changed_.notify_all();
    return {};
  }
  Result<std::string> get(std::string_view key, Seconds patience) override {
    std::unique_lock guard(mutex_);
    const auto there = [&] { return values_.contains(std::string(key)); };
    if (!changed_.wait_for(guard, std::chrono::duration<double>(patience / 1_s), there))
      return Error{Error::Code::kIo, "nobody set " + std::string(key)};
    return values_.at(std::string(key));
  }
  Result<std::optional<std::string>> look(std::string_view key) override {
    const std::lock_guard guard(mutex_);
    const auto found = values_.find(std::string(key));
    if (found == values_.end()) return std::optional<std::string>();
    return std::optional<std::string>(found->second);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, std::string> values_;
};

}  // namespace foreshard::replay::gpu
