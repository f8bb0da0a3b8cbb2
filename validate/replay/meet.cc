#include "validate/replay/meet.h"

#include <chrono>
#include <filesystem>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <utility>

#include "base/net/identity.h"
#include "base/quantity.h"

#include "validate/replay/tcp_store.h"

namespace foreshard::replay {
namespace {

using Clock = std::chrono::steady_clock;

// Rank 0 takes a free port and writes it into `file`, with its host unless `options.address` is the
// loopback. The file may be left from an earlier job of the same name, so a rank that finds nobody
// there looks again.
Result<std::unique_ptr<Store>> open_by_file(const std::string& file, TcpOptions options) {
  if (options.rank == 0) {
    ::unlink(file.c_str());
    const std::string host = options.address == net::kLoopback ? "" : options.address;
    FORESHARD_ASSIGN(auto store, serve_tcp_store(options, [&](std::uint16_t port) {
                       return net::write_rank_zero(file, {.host = host, .port = port});
                     }));
    // Once all ranks have found the store, nobody needs the file.
    Status met = barrier(*store, "found", 0, options.ranks, options.patience);
    ::unlink(file.c_str());
    FORESHARD_TRY(met);
    return store;
  }
  const Seconds patience = options.patience;
  const auto end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                                      std::chrono::duration<double>(patience / 1_s));
  options.patience = 200_ms;
  Status last;
  for (;;) {
    if (const auto found = net::rank_zero_in(file)) {
      options.address = found->address();
      options.port = found->port;
      auto store = open_tcp_store(options);
      if (store) {
        FORESHARD_TRY(barrier(**store, "found", options.rank, options.ranks, patience));
        return store;
      }
      if (store.error().code != Error::Code::kIo) return store.error();
      last = store.error();
    }
    if (Clock::now() >= end) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return Error{Error::Code::kIo,
               "rank " + std::to_string(options.rank) + " did not find rank 0 within " +
                   format(patience) +
                   (last.ok() ? ": there is no " + file : ": " + last.error().message)};
}

// Meets in a folder that all ranks see; rank 0 creates it if necessary.
Result<std::unique_ptr<Store>> open_in_folder(const std::filesystem::path& folder,
                                              TcpOptions options) {
  if (options.rank == 0) {
    std::error_code code;
    std::filesystem::create_directories(folder, code);
    if (code)
      return Error{Error::Code::kIo, folder.string() + ": cannot make it: " + code.message()};
  }
  options.address = net::own_name();
  return open_by_file((folder / "rank-0.foreshard").string(), std::move(options));
}

}  // namespace

Result<std::unique_ptr<Store>> open_store(const Environment& environment, const Identity& identity,
                                          const MeetOptions& options) {
  if (identity.ranks == 1) return lone_store();
  TcpOptions tcp{.rank = identity.rank,
                 .ranks = identity.ranks,
                 .job = options.job,
                 .patience = options.patience};
  if (!options.folder.empty()) return open_in_folder(options.folder, std::move(tcp));
  FORESHARD_ASSIGN(const auto meeting, rendezvous_from(environment, identity));
  const bool here = meeting.kind == Rendezvous::Kind::kOneHost;
  tcp.address = here ? net::kLoopback : meeting.address;
  tcp.port = meeting.port;
  if (here) return open_by_file(meeting.file, std::move(tcp));
  return open_tcp_store(tcp);
}

}  // namespace foreshard::replay
