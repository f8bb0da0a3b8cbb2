#include "validate/replay/file_store.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>
#include <unistd.h>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/quantity.h"

#include "validate/replay/internal/faults.h"

namespace foreshard::replay {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr std::string_view kSuffix = ".foreshard";

// A key as a file name: "/" is not one of its characters.
std::string name_of(std::string_view key) {
  std::string name;
  for (const char c : key) {
    if (c == '/')
      name += "%2F";
    else if (c == '%')
      name += "%25";
    else
      name += c;
  }
  return name + std::string(kSuffix);
}

// "node7, process 4711" -> host and number; the number is 0 if there is none.
std::pair<std::string, pid_t> process_in(const std::string& who) {
  const std::string word = ", process ";
  const auto place = who.rfind(word);
  if (place == std::string::npos) return {who, 0};
  return {who.substr(0, place),
          static_cast<pid_t>(std::strtol(who.c_str() + place + word.size(), nullptr, 10))};
}

class FileStore : public Store {
 public:
  explicit FileStore(FileStoreOptions options) : options_(std::move(options)) {}

  ~FileStore() override {
    static_cast<void>(put("left/" + std::to_string(options_.rank), ""));
    if (ended()) return;
    for (std::int32_t rank = 0; rank < options_.ranks; ++rank)
      if (!exists("left/" + std::to_string(rank))) return;
    std::error_code ignored;  // Another rank may do the same.
    for (const auto& entry : fs::directory_iterator(options_.folder, ignored))
      if (entry.path().extension() == kSuffix) fs::remove(entry.path(), ignored);
  }

  // Rank 0 says which job this folder is for; the others check.
  std::optional<Error> open() {
    const std::string who = this_process();
    if (options_.rank == 0) {
      std::error_code code;
      fs::create_directories(options_.folder, code);
      if (code) return io(options_.folder.string() + ": cannot make it: " + code.message());
      if (exists("job")) {
        const std::string why = options_.folder.string() +
                                ": holds what an earlier run left; remove it, or give another "
                                "folder";
        give_up(why);
        return Error{Error::Code::kInvalidInput, why};
      }
      if (auto fault = put("job", options_.job.token + "\n" + options_.job.options)) return fault;
    }
    const auto job = get("job", options_.patience);
    if (!job)
      return io("rank " + std::to_string(options_.rank) + " did not find rank 0 in " +
                options_.folder.string() + ": " + job.error().message);
    const auto end = job->rfind('\n');
    if (end == std::string::npos)
      return io(options_.folder.string() + ": what is there as a job is none of foreshard-replay");
    const std::string why =
        why_stranger(std::to_string(options_.rank), options_.job,
                     {.options = job->substr(end + 1), .token = job->substr(0, end)});
    if (!why.empty()) {
      give_up(why);
      return Error{Error::Code::kInvalidInput, why};
    }
    const std::string key = here(options_.rank);
    if (exists(key))
      return Error{Error::Code::kInvalidInput, "rank " + std::to_string(options_.rank) +
                                                   " is there already, in " +
                                                   options_.folder.string()};
    return put(key, who);
  }

  std::optional<Error> set(std::string_view key, std::string_view value) override {
    return put("key/" + std::string(key), value);
  }

  Result<std::string> get(std::string_view key, Seconds patience) override {
    const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                        std::chrono::duration<double>(patience / 1_s));
    const bool own = key == "job";
    for (auto pause = std::chrono::milliseconds(2);;
         pause = std::min(pause * 2, std::chrono::milliseconds(50))) {
      auto value = read(own ? std::string(key) : "key/" + std::string(key));
      if (!value) return value.error();
      if (*value) return **std::move(value);
      if (const auto why = ended()) return io(*why);
      if (Clock::now() >= end)
        return io("nobody set '" + std::string(key) + "' within " + format(patience));
      std::this_thread::sleep_for(pause);
    }
  }

  Result<std::optional<std::string>> look(std::string_view key) override {
    return read("key/" + std::string(key));
  }

  void give_up(std::string_view why) override {
    std::string message(why);
    if (exists(here(options_.rank)))
      message =
          "rank " + std::to_string(options_.rank) + " (" + this_process() + ") gave up: " + message;
    if (!exists("ended")) static_cast<void>(put("ended", message));
  }

  std::optional<std::string> ended() override {
    const std::lock_guard lock(mutex_);
    if (!ended_) {
      auto said = read("ended");
      if (said && *said)
        ended_ = **std::move(said);
      else
        ended_ = killed();
    }
    return ended_;
  }

 private:
  static std::string here(std::int32_t rank) { return "here/" + std::to_string(rank); }
  fs::path path_of(std::string_view key) const { return options_.folder / name_of(key); }
  bool exists(std::string_view key) const {
    std::error_code ignored;
    return fs::exists(path_of(key), ignored);
  }

  std::optional<Error> put(std::string_view key, std::string_view value) const {
    if (static_cast<double>(value.size()) > kLargestValue / 1_B)
      return io("the value of '" + std::string(key) + "' is larger than " + format(kLargestValue));
    return write_file(path_of(key), value);
  }

  Result<std::optional<std::string>> read(std::string_view key) const {
    if (!exists(key)) return std::optional<std::string>();
    auto bytes = read_file(path_of(key), kLargestValue);
    if (!bytes) return bytes.error();
    return std::optional<std::string>(*std::move(bytes));
  }

  // Of the ranks on this host: whose process is gone though it has not left.
  std::optional<std::string> killed() {
    const auto own = process_in(this_process()).first;
    for (std::int32_t rank = 0; rank < options_.ranks; ++rank) {
      if (rank == options_.rank) continue;
      const auto who = read(here(rank));
      if (!who || !*who) continue;
      const auto [host, process] = process_in(**who);
      if (host != own || process <= 0) continue;
      if (::kill(process, 0) != 0 && errno == ESRCH && !exists("left/" + std::to_string(rank)))
        return "rank " + std::to_string(rank) + " (" + **who + ") ended without a word";
    }
    return std::nullopt;
  }

  FileStoreOptions options_;
  std::mutex mutex_;
  std::optional<std::string> ended_;
};

}  // namespace

Result<std::unique_ptr<Store>> open_file_store(const FileStoreOptions& options) {
  auto store = std::make_unique<FileStore>(options);
  if (auto fault = store->open()) {
    return *fault;
  }
  return std::unique_ptr<Store>(std::move(store));
}

}  // namespace foreshard::replay
