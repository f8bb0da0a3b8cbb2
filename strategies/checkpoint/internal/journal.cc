#include "strategies/checkpoint/internal/journal.h"

#include <cerrno>
#include <fcntl.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <sys/file.h>
#include <unistd.h>

#include "base/file.h"

#include "strategies/checkpoint/convert.h"
#include "strategies/program/ir/json_node.h"

namespace foreshard::checkpoint::internal {
namespace {

using program::JsonNode;
using Json = nlohmann::json;

constexpr Bytes kMostJournal = 256_MiB;
constexpr int kMostDepth = 1;

ShardFile file_from(const JsonNode& node) {
  node.fields({"rank", "path", "bytes", "sha256"});
  return {.rank = static_cast<std::int32_t>(
              node["rank"].integer(0, std::numeric_limits<std::int32_t>::max())),
          .path = node["path"].text(),
          .bytes = node["bytes"].integer(0, std::numeric_limits<std::int64_t>::max()),
          .sha256 = node["sha256"].text()};
}

}  // namespace

Result<Journal> Journal::open(const std::filesystem::path& directory, const std::string& identity) {
  Journal journal;
  journal.path_ = directory / kJournalName;
  journal.file_ =
      Descriptor(::open(journal.path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
  if (journal.file_.get() < 0) return system_fault(journal.path_, "open");
  if (::flock(journal.file_.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return system_fault(journal.path_, "lock");
    return Error{Error::Code::kInvalidInput,
                 directory.string() + ": another conversion is writing there"};
  }
  FORESHARD_ASSIGN(const auto text, read_file(journal.path_, kMostJournal));
  const std::string first = Json{{"conversion", identity}}.dump() + "\n";
  std::size_t at = text.find('\n');
  if (at == std::string::npos) {  // new, or cut off in its first line
    if (::ftruncate(journal.file_.get(), 0) != 0) return system_fault(journal.path_, "write");
    FORESHARD_TRY(journal.append(first));
    FORESHARD_TRY(flush_directory(directory));
    return journal;
  }
  ++at;
  if (text.substr(0, at) != first)
    return Error{Error::Code::kInvalidInput,
                 directory.string() +
                     ": was left by another conversion (or its source has "
                     "changed since); remove it, or choose another place"};
  for (;;) {
    const std::size_t end = text.find('\n', at);
    if (end == std::string::npos) break;
    try {
      const Json line =
          program::parse_strictly(std::string_view(text).substr(at, end - at), kMostDepth);
      ShardFile file = file_from(JsonNode(line));
      journal.finished_[file.path] = std::move(file);
    } catch (const program::JsonFault&) {
      break;  // garbage after a crash: later lines are not reliable either
    }
    at = end + 1;
  }
  if (::ftruncate(journal.file_.get(), static_cast<off_t>(at)) != 0)
    return system_fault(journal.path_, "write");
  return journal;
}

Status Journal::add(const ShardFile& file) {
  const std::scoped_lock lock(*adding_);
  return append(
      Json{{"rank", file.rank}, {"path", file.path}, {"bytes", file.bytes}, {"sha256", file.sha256}}
          .dump() +
      "\n");
}

Status Journal::append(const std::string& line) {
  std::string_view rest = line;
  if (::lseek(file_.get(), 0, SEEK_END) < 0) return system_fault(path_, "write");
  while (!rest.empty()) {
    const ssize_t n = ::write(file_.get(), rest.data(), rest.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return system_fault(path_, "write");
    rest.remove_prefix(static_cast<std::size_t>(n));
  }
  if (::fsync(file_.get()) != 0) return system_fault(path_, "write");
  return {};
}

}  // namespace foreshard::checkpoint::internal
