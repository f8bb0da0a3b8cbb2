#include "validate/replay/meet.h"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>
#include <utility>

#include "base/file.h"
#include "base/quantity.h"

#include "validate/replay/file_store.h"
#include "validate/replay/tcp_store.h"

namespace foreshard::replay {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kLoopback = "127.0.0.1";

// The port that rank 0 wrote: only of a file of our own, since others may write to the folder of
// temporary files.
std::optional<std::uint16_t> port_in(const std::string& file) {
  struct stat status {};
  if (::lstat(file.c_str(), &status) != 0 || !S_ISREG(status.st_mode) ||
      status.st_uid != ::getuid())
    return std::nullopt;
  const auto text = read_file(file, 64_B);
  if (!text) return std::nullopt;
  const int port = std::atoi(text->c_str());
  if (port < 1 || port > 65535) return std::nullopt;
  return static_cast<std::uint16_t>(port);
}

// All ranks on one host. The file may be left from an earlier job of the same name, so a rank that
// finds nobody there looks again.
Result<std::unique_ptr<Store>> open_on_one_host(const std::string& file, TcpOptions options) {
  options.address = kLoopback;
  if (options.rank == 0) {
    ::unlink(file.c_str());
    auto store = serve_tcp_store(
        options, [&](std::uint16_t port) { return write_file(file, std::to_string(port) + "\n"); });
    if (!store) return store.error();
    // When all have found it, nobody needs it any more.
    const auto fault = barrier(**store, "found", 0, options.ranks, options.patience);
    ::unlink(file.c_str());
    if (fault) return *fault;
    return store;
  }
  const Seconds patience = options.patience;
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                      std::chrono::duration<double>(patience / 1_s));
  options.patience = 200_ms;
  std::optional<Error> last;
  for (;;) {
    if (const auto port = port_in(file)) {
      options.port = *port;
      auto store = open_tcp_store(options);
      if (store) {
        if (auto fault = barrier(**store, "found", options.rank, options.ranks, patience))
          return *fault;
        return store;
      }
      if (store.error().code != Error::Code::kIo) return store.error();
      last = store.error();
    }
    if (Clock::now() >= end) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return Error{Error::Code::kIo, "rank " + std::to_string(options.rank) +
                                     " did not find rank 0 on this host within " +
                                     format(patience) +
                                     (last ? ": " + last->message : ": there is no " + file)};
}

}  // namespace

Result<std::unique_ptr<Store>> open_store(const Environment& environment, const Identity& identity,
                                          const MeetOptions& options) {
  if (identity.ranks == 1) return lone_store();
  if (!options.folder.empty())
    return open_file_store({.folder = options.folder,
                            .rank = identity.rank,
                            .ranks = identity.ranks,
                            .job = options.job,
                            .patience = options.patience});
  const auto meeting = meeting_from(environment, identity);
  if (!meeting) return meeting.error();
  const TcpOptions tcp{.address = meeting->address,
                       .port = meeting->port,
                       .rank = identity.rank,
                       .ranks = identity.ranks,
                       .job = options.job,
                       .patience = options.patience};
  if (meeting->kind == Meeting::Kind::kOneHost) return open_on_one_host(meeting->file, tcp);
  return open_tcp_store(tcp);
}

}  // namespace foreshard::replay
