#include "validate/replay/store.h"

#include <array>
#include <map>
#include <mutex>
#include <unistd.h>

#include "base/quantity.h"

namespace foreshard::replay {
namespace {

class LoneStore : public Store {
 public:
  Status set(std::string_view key, std::string_view value) override {
    const std::lock_guard lock(mutex_);
    values_.insert_or_assign(std::string(key), std::string(value));
    return {};
  }
  Result<std::string> get(std::string_view key, Seconds patience) override {
    static_cast<void>(patience);
    auto value = look(key);
    if (!value) return value.error();
    if (!*value)
      return Error{Error::Code::kIo, "nobody is there to set '" + std::string(key) + "'"};
    return **value;
  }
  Result<std::optional<std::string>> look(std::string_view key) override {
    const std::lock_guard lock(mutex_);
    const auto found = values_.find(key);
    if (found == values_.end()) return std::optional<std::string>();
    return std::optional<std::string>(found->second);
  }

 private:
  std::mutex mutex_;
  std::map<std::string, std::string, std::less<>> values_;
};

}  // namespace

std::unique_ptr<Store> lone_store() {
  return std::make_unique<LoneStore>();
}

Status barrier(Store& store, std::string_view name, std::int32_t rank, std::int32_t ranks,
               Seconds patience) {
  const std::string prefix = "barrier/" + std::string(name) + "/";
  if (rank != 0) {
    FORESHARD_TRY(store.set(prefix + std::to_string(rank), ""));
    // Rank 0 has the shorter patience, because it can say which rank is missing.
    FORESHARD_ASSIGN(const auto open, store.get(prefix + "open", patience + 5_s));
    return {};
  }
  for (std::int32_t other = 1; other < ranks; ++other) {
    const auto here = store.get(prefix + std::to_string(other), patience);
    if (here) continue;
    if (store.ended()) return here.error();
    return Error{here.error().code, "rank " + std::to_string(other) + " did not come to '" +
                                        std::string(name) + "' within " + format(patience) + ": " +
                                        here.error().message};
  }
  return store.set(prefix + "open", "");
}

std::string why_stranger(std::string_view rank, const JobKey& theirs, const JobKey& own) {
  const std::string who = "rank " + std::string(rank);
  if (theirs.token != own.token)
    return who +
           " belongs to another job than the rank 0 that it found: their tokens differ; let the "
           "jobs meet elsewhere (MASTER_PORT, --rendezvous), or, if they are one, give all ranks "
           "the same FORESHARD_TOKEN";
  if (theirs.options != own.options)
    return who +
           " was started with another Program, other options or another version than rank 0: '" +
           theirs.options + "' instead of '" + own.options + "'";
  return "";
}

std::string this_process() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0) name[0] = '?';
  return std::string(name.data()) + ", process " + std::to_string(::getpid());
}

}  // namespace foreshard::replay
