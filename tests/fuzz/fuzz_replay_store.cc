// Any messages to rank 0 of a replay: its store goes on.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/check.h"
#include "tests/fuzz/fuzzer.h"
#include "tests/fuzz/words.h"

#include "validate/replay/tcp_store.h"

namespace foreshard::fuzz::replay_store_test {

constexpr std::int32_t kRanks = 1000;

// A store of many ranks, of which rank 0 alone is there.
struct RankZero {
  RankZero() {
    for (int tries = 0; store == nullptr; ++tries) {
      FORESHARD_CHECK(tries < 100);
      port = net::listen_on(net::kLoopback, 0)->port;  // free from now on
      auto opened = replay::open_tcp_store({.address = net::kLoopback,
                                            .port = port,
                                            .ranks = kRanks,
                                            .job = {.options = "options", .token = "token"}});
      if (opened) store = *std::move(opened);
    }
  }
  std::unique_ptr<replay::Store> store;
  std::uint16_t port = 0;
};

}  // namespace foreshard::fuzz::replay_store_test

FORESHARD_FUZZER(fuzz_replay_store) {
  using namespace foreshard;
  using namespace foreshard::fuzz::replay_store_test;
  static std::unique_ptr<RankZero> zero;
  static std::int32_t rank = kRanks;
  // What was set stays: after some inputs, a new store begins.
  if (++rank >= kRanks) {
    zero = nullptr;
    zero = std::make_unique<RankZero>();
    rank = 1;
  }
  fuzz::speak_input(zero->port, {reinterpret_cast<const char*>(data), size},
                    [](net::Message& message) {
                      for (std::string& word : message)
                        if (word == "RANK") word = std::to_string(rank);
                    });
  FORESHARD_CHECK(zero->store->look("key").has_value());
  return 0;
}
