#include "validate/replay/store.h"

#include <atomic>
#include <csignal>
#include <dlfcn.h>
#include <netdb.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "base/net/message.h"
#include "base/net/socket.h"
#include "tests/base/net/hostile.h"
#include "tests/base/temporary_folder.h"
#include "tests/test.h"

#include "validate/replay/tcp_store.h"

// As /etc/hosts of a Debian host that is called "debian".
extern "C" int getaddrinfo(const char* name, const char* service, const addrinfo* hints,
                           addrinfo** found) {
  using Resolve = int (*)(const char*, const char*, const addrinfo*, addrinfo**);
  static const auto resolve = reinterpret_cast<Resolve>(::dlsym(RTLD_NEXT, "getaddrinfo"));
  const bool own = name != nullptr && std::string(name) == "debian" &&
                   (hints == nullptr || (hints->ai_flags & AI_NUMERICHOST) == 0);
  return resolve(own ? "127.0.1.1" : name, service, hints, found);
}

namespace foreshard::replay {
namespace {

// Opens a job's store for each rank, each in a thread of its own.
using Open = std::function<Result<std::unique_ptr<Store>>(std::int32_t rank)>;

// A free port: whoever listens on it is gone when it is used.
std::uint16_t free_port() {
  const auto listening = net::listen_on("127.0.0.1", 0);
  return listening ? listening->port : std::uint16_t{0};
}

struct Kind {
  std::string name;
  std::function<Open(const TemporaryFolder& folder, std::int32_t ranks)> make;
};

Open tcp(const TemporaryFolder&, std::int32_t ranks) {
  return [port = free_port(), ranks](std::int32_t rank) {
    return open_tcp_store({.address = "127.0.0.1",
                           .port = port,
                           .rank = rank,
                           .ranks = ranks,
                           .job = {"job"},
                           .patience = 10_s});
  };
}
Open in_folder(const TemporaryFolder& folder, std::int32_t ranks) {
  return [path = folder.path() / "meeting", ranks](std::int32_t rank) {
    return open_store([](const std::string&) { return std::nullopt; },
                      {.rank = rank, .ranks = ranks},
                      {.folder = path.string(), .job = {"job"}, .patience = 10_s});
  };
}

void on_all(const Open& open, std::int32_t ranks,
            const std::function<void(std::int32_t rank, Store& store)>& work) {
  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(ranks));
  for (std::int32_t rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      const auto store = value_of(open(rank));
      work(rank, *store);
    });
  for (std::thread& thread : threads) thread.join();
}

class AnyStore : public testing::TestWithParam<Kind> {
 protected:
  Open open(std::int32_t ranks) const { return GetParam().make(folder_, ranks); }

 private:
  TemporaryFolder folder_;
};

TEST_P(AnyStore, HandsValuesOver) {
  const std::string large(3'000'000, 'x');
  const std::string binary("a\0b\n", 4);
  on_all(open(4), 4, [&](std::int32_t rank, Store& store) {
    const auto key = [](std::int32_t of) { return "id/" + std::to_string(of); };
    EXPECT_TRUE(store.set(key(rank), rank == 2 ? large : binary).ok());
    for (std::int32_t other = 0; other < 4; ++other)
      EXPECT_EQ(value_of(store.get(key(other), 10_s)), other == 2 ? large : binary);
    EXPECT_FALSE(value_of(store.look("never")).has_value());
    EXPECT_TRUE(barrier(store, "end", rank, 4, 10_s).ok());
  });
}

TEST_P(AnyStore, KeepsKeysApartThatLookAlike) {
  on_all(open(1), 1, [](std::int32_t, Store& store) {
    EXPECT_TRUE(store.set("a/b", "1").ok());
    EXPECT_TRUE(store.set("a%2Fb", "2").ok());
    EXPECT_EQ(*store.get("a/b", 1_s), "1");
    EXPECT_EQ(*store.get("a%2Fb", 1_s), "2");
  });
}

TEST_P(AnyStore, GetEndsWithItsPatience) {
  on_all(open(1), 1, [](std::int32_t, Store& store) {
    const auto begin = std::chrono::steady_clock::now();
    const auto value = store.get("never", 100_ms);
    const auto took = std::chrono::steady_clock::now() - begin;
    ASSERT_FALSE(value);
    EXPECT_EQ(value.error().code, Error::Code::kIo);
    EXPECT_EQ(value.error().message, "nobody set 'never' within 100 ms");
    EXPECT_LT(took, std::chrono::seconds(2));
    EXPECT_TRUE(store.set("later", "still works").ok());
  });
}

TEST_P(AnyStore, ABarrierNamesWhoDidNotCome) {
  on_all(open(2), 2, [](std::int32_t rank, Store& store) {
    if (rank == 1) {
      EXPECT_TRUE(store.get("over", 10_s));
      return;
    }
    EXPECT_THAT(message_of(barrier(store, "begin", 0, 2, 100_ms)),
                HasSubstr("rank 1 did not come to 'begin' within 100 ms"));
    EXPECT_TRUE(store.set("over", "").ok());
  });
}

TEST_P(AnyStore, ABarrierHoldsUntilTheLastCame) {
  std::atomic<int> came{0};
  on_all(open(6), 6, [&](std::int32_t rank, Store& store) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10 * rank));
    ++came;
    EXPECT_TRUE(barrier(store, "all", rank, 6, 10_s).ok());
    EXPECT_EQ(came, 6);
  });
}

TEST_P(AnyStore, TellsTheOthersWhyARankGaveUp) {
  on_all(open(3), 3, [](std::int32_t rank, Store& store) {
    EXPECT_TRUE(barrier(store, "here", rank, 3, 10_s).ok());
    if (rank == 2) {
      store.give_up("out of memory in gemm");
      return;
    }
    const std::string value = message_of(store.get("never", 10_s));
    EXPECT_THAT(value, AllOf(HasSubstr("rank 2 ("), HasSubstr(") gave up: out of memory in gemm")));
    EXPECT_EQ(store.ended(), value);
    EXPECT_TRUE(store.set("place/" + std::to_string(rank), "still works").ok());
    EXPECT_TRUE(*store.look("place/" + std::to_string(rank)));
  });
}

TEST_P(AnyStore, MissesNobodyWhoLeftInOrder) {
  on_all(open(4), 4, [](std::int32_t rank, Store& store) {
    EXPECT_TRUE(barrier(store, "here", rank, 4, 10_s).ok());
    if (rank == 1) return;  // Its store is closed.
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    EXPECT_EQ(store.ended(), std::nullopt);
  });
}

// A rank that is killed says nothing; processes, because threads cannot be.
TEST_P(AnyStore, NoticesAKilledRank) {
  const Open opener = open(3);
  std::vector<pid_t> children;
  for (std::int32_t rank = 1; rank < 3; ++rank) {
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      auto store = opener(rank);
      if (!store || !barrier(**store, "here", rank, 3, 10_s).ok()) ::_exit(1);
      if (rank == 1) ::pause();
      if (!(*store)->set("passed", "the barrier").ok()) ::_exit(1);
      const auto value = (*store)->get("never", 20_s);
      const bool told = !value && value.error().message.starts_with("rank 1 (") &&
                        value.error().message.ends_with(") ended without a word");
      (*store)->give_up("done");
      ::_exit(told ? 0 : 2);
    }
    children.push_back(child);
  }
  const auto store = value_of(opener(0));
  ASSERT_TRUE(barrier(*store, "here", 0, 3, 10_s).ok());
  ASSERT_TRUE(store->get("passed", 10_s));  // rank 2 is not on its way through it any more
  ::kill(children[0], SIGKILL);
  int status = 0;
  ASSERT_EQ(::waitpid(children[0], &status, 0), children[0]);
  const auto begin = std::chrono::steady_clock::now();
  const auto value = store->get("never", 20_s);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
  ASSERT_FALSE(value);
  EXPECT_THAT(value.error().message,
              HasSubstr("process " + std::to_string(children[0]) + ") ended without a word"));
  ASSERT_EQ(::waitpid(children[1], &status, 0), children[1]);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

INSTANTIATE_TEST_SUITE_P(Kinds, AnyStore, testing::Values(Kind{"tcp", tcp}),
                         [](const auto& of) { return of.param.name; });

TEST(TcpStore, NoticesThatRankZeroIsGone) {
  const TemporaryFolder unused;
  const Open open = tcp(unused, 2);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const auto store = open(0);
    ::pause();
    ::_exit(store ? 0 : 1);
  }
  const auto store = value_of(open(1));
  ::kill(child, SIGKILL);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_THAT(message_of(store->get("never", 20_s)),
              AllOf(HasSubstr("rank 0 ("),
                    HasSubstr("process " + std::to_string(child) + ") ended without a word")));
  EXPECT_FALSE(store->set("a", "b").ok());
}

std::string refusal(const TcpOptions& first, const TcpOptions& second) {
  std::string message = "accepted";
  const auto server = value_of(open_tcp_store(first));
  const auto store = open_tcp_store(second);
  if (!store) message = store.error().message;
  return message;
}

TEST(TcpStore, RefusesWhoDoesNotBelongToTheJob) {
  const TcpOptions zero{.address = "127.0.0.1",
                        .port = free_port(),
                        .rank = 0,
                        .ranks = 2,
                        .job = {"gpt 3f2a"},
                        .patience = 5_s};
  TcpOptions one = zero;
  one.rank = 1;
  EXPECT_EQ(refusal(zero, one), "accepted");
  one.job.options = "gpt 77aa";
  EXPECT_EQ(refusal(zero, one),
            "rank 1 was started with another Program, other options or another version than rank "
            "0: 'gpt 77aa' instead of 'gpt 3f2a'");
  one = zero;
  one.rank = 1;
  one.job.token = "4712.0";
  EXPECT_EQ(refusal(zero, one),
            "rank 1 belongs to another job than the rank 0 that it found: their tokens differ; let "
            "the jobs meet elsewhere (MASTER_PORT, --rendezvous), or, if they are one, give all "
            "ranks the same FORESHARD_TOKEN");
  one = zero;
  one.rank = 1;
  one.ranks = 4;
  EXPECT_EQ(refusal(zero, one), "rank 1 is one of 4, but rank 0 is one of 2");
}

TEST(TcpStore, RefusesASecondRankOfOneNumber) {
  TcpOptions options{.address = "localhost",
                     .port = free_port(),
                     .rank = 0,
                     .ranks = 2,
                     .job = {"job"},
                     .patience = 5_s};
  const auto zero = open_tcp_store(options);
  ASSERT_TRUE(zero);
  options.rank = 1;
  const auto one = open_tcp_store(options);
  ASSERT_TRUE(one);
  const auto second = open_tcp_store(options);
  ASSERT_FALSE(second);
  EXPECT_THAT(second.error().message,
              AllOf(HasSubstr("rank 1 is there already ("), HasSubstr("process ")));
  EXPECT_EQ(second.error().code, Error::Code::kInvalidInput);
}

// Rank 0 serves under `zero`, rank 1 comes to `one`.
std::string meets(const std::string& zero, const std::string& one) {
  TcpOptions options{.address = zero, .port = free_port(), .rank = 0, .ranks = 2, .patience = 5_s};
  const auto first = open_tcp_store(options);
  if (!first) return first.error().message;
  options.address = one;
  options.rank = 1;
  options.patience = 200_ms;
  return message_of(open_tcp_store(options), "met");
}

TEST(TcpStore, MeetsOverIpv4AndIpv6) {
  EXPECT_EQ(meets("127.0.0.1", "127.0.0.1"), "met");
  EXPECT_EQ(meets("localhost", "localhost"), "met");
  if (!net::listen_on("::1", 0)) GTEST_SKIP() << "this host has no IPv6";
  EXPECT_EQ(meets("::1", "::1"), "met");
  EXPECT_EQ(meets("node7", "::1"), "met");
}

// A host that resolves its own name to 127.0.1.1 must be reached under its other addresses, too.
// 127.0.0.1 stands for them: a server that listens on 127.0.1.1 alone is not there.
TEST(TcpStore, ListensEverywhereUnderANameOfTheLoopback) {
  ASSERT_FALSE(net::connect_to("127.0.0.1", free_port(), 10_ms));
  EXPECT_EQ(meets("debian", "127.0.0.1"), "met");
  EXPECT_EQ(meets("debian", "debian"), "met");
  EXPECT_EQ(meets("unknown.invalid", "127.0.0.1"), "met");
  // The number itself says that only this host is meant.
  EXPECT_THAT(meets("127.0.1.1", "127.0.0.1"), HasSubstr("Connection refused"));
}

TEST(Addresses, AreLocalInSoManyWords) {
  for (const char* address : {"localhost", "127.0.0.1", "127.0.1.1", "127.1", "::1"})
    EXPECT_TRUE(net::is_local(address)) << address;
  for (const char* address : {"debian", "node7", "10.0.0.1", "fe80::1", "::", "0.0.0.0", ""})
    EXPECT_FALSE(net::is_local(address)) << address;
}

TEST(TcpStore, SaysThatAPortIsInUse) {
  const auto listening = value_of(net::listen_on("127.0.0.1", 0));
  EXPECT_EQ(
      message_of(open_tcp_store({.address = "127.0.0.1", .port = listening.port, .ranks = 2})),
      "port " + std::to_string(listening.port) +
          " of this host is in use; choose another by MASTER_PORT");
}

TEST(TcpStore, SaysThatNobodyIsThere) {
  const auto port = free_port();
  EXPECT_EQ(message_of(open_tcp_store(
                {.address = "127.0.0.1", .port = port, .rank = 1, .ranks = 2, .patience = 100_ms})),
            "rank 1 cannot reach 127.0.0.1:" + std::to_string(port) +
                " within 100 ms: Connection refused; rank 0 must run there, and MASTER_ADDR and "
                "MASTER_PORT must name it");
}

// Whatever is sent to the server, the ranks of the job go on.
TEST(TcpStore, SurvivesGarbage) {
  const auto port = free_port();
  TcpOptions options{
      .address = "127.0.0.1", .port = port, .rank = 0, .ranks = 2, .job = {"job"}, .patience = 5_s};
  const auto zero = value_of(open_tcp_store(options));
  const net::Message hello{"foreshard-replay/3", "1", "2", "job", "", "me"};
  std::mt19937 random(1);
  std::vector<net::Descriptor> kept;
  for (int attempt = 0; attempt < 300; ++attempt) {
    auto socket = value_of(net::connect_to("127.0.0.1", port, 5_s));
    std::string bytes;
    switch (attempt % 6) {
      case 0:  // noise
        for (int i = 0; i < 200; ++i) bytes.push_back(static_cast<char>(random() & 0xff));
        break;
      case 1:  // a web browser
        bytes = "GET / HTTP/1.1\r\nHost: node7\r\n\r\n";
        break;
      case 2: {  // an honest greeting with a byte changed, so that it is nobody's
        net::Message other = hello;
        other[1] = "7";
        bytes = net::encode(other);
        bytes[4 + random() % (bytes.size() - 4)] ^= static_cast<char>(1 + random() % 255);
        break;
      }
      case 3:  // one that stops in the middle
        bytes = net::encode(hello).substr(0, 1 + random() % 20);
        break;
      case 4:  // a request before the greeting
        bytes = net::encode({"set", "5", "key", "value"});
        break;
      default:  // the largest frame of all
        bytes = "\xff\xff\xff\xff rest";
    }
    static_cast<void>(net::send_all(socket.get(), bytes));
    net::Descriptor connection = std::move(socket);
    if (attempt % 50 == 0) kept.push_back(std::move(connection));
  }
  options.rank = 1;
  EXPECT_TRUE(value_of(open_tcp_store(options))->set("a", "b").ok());
  EXPECT_EQ(*zero->get("a", 5_s), "b");
  EXPECT_EQ(zero->ended(), std::nullopt);
}

// What answers may be something else, too.
TEST(TcpStore, KnowsThatAnotherServerIsNone) {
  const auto listening = value_of(net::listen_on("127.0.0.1", 0));
  std::thread other([&] {
    int socket = -1;
    while (socket < 0) {
      socket = ::accept(listening.socket.get(), nullptr, nullptr);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    const net::Descriptor connection(socket);
    static_cast<void>(net::send_all(socket, "HTTP/1.1 400 Bad Request\r\n\r\n"));
  });
  const auto store = open_tcp_store(
      {.address = "127.0.0.1", .port = listening.port, .rank = 1, .ranks = 2, .patience = 5_s});
  other.join();
  ASSERT_FALSE(store);
  EXPECT_THAT(store.error().message, HasSubstr("is not foreshard-replay"));
}

// Whoever comes first, and how many: the ranks of the job meet at once, and go on.
TEST(TcpStore, SurvivesManyConnections) {
  const auto port = free_port();
  TcpOptions options{
      .address = "127.0.0.1", .port = port, .rank = 0, .ranks = 2, .job = {"job"}, .patience = 5_s};
  const auto zero = value_of(open_tcp_store(options));
  const net::Hostile hostile(port);
  options.rank = 1;
  const auto begin = net::Clock::now();
  const auto one = value_of(open_tcp_store(options));
  EXPECT_LT(net::Clock::now() - begin, std::chrono::seconds(1));
  EXPECT_TRUE(one->set("a", "b").ok());
  EXPECT_EQ(*zero->get("a", 5_s), "b");
  EXPECT_EQ(zero->ended(), std::nullopt);
}

TEST(MeetingInAFolder, HandsValuesOverAndLeavesNothingBehind) {
  const TemporaryFolder folder;
  const Open open = in_folder(folder, 3);
  for (int run = 0; run < 2; ++run)
    on_all(open, 3, [](std::int32_t rank, Store& store) {
      EXPECT_TRUE(store.set("a/" + std::to_string(rank), "b").ok());
      EXPECT_TRUE(barrier(store, "end", rank, 3, 10_s).ok());
    });
  EXPECT_TRUE(std::filesystem::is_empty(folder.path() / "meeting"));
}

// Another job left its file: nobody is there.
TEST(MeetingInAFolder, LooksAgainWhereNobodyIs) {
  const TemporaryFolder folder;
  std::filesystem::create_directories(folder.path() / "meeting");
  folder.write("meeting/rank-0.foreshard", std::to_string(free_port()) + "\n");
  const Open open = in_folder(folder, 2);
  std::thread late([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    const auto store = value_of(open(0));
  });
  { const auto store = value_of(open(1)); }
  late.join();
}

TEST(MeetingInAFolder, SaysWhereItLooked) {
  const TemporaryFolder folder;
  EXPECT_THAT(message_of(open_store(
                  [](const std::string&) { return std::nullopt; }, {.rank = 1, .ranks = 2},
                  {.folder = folder.path().string(), .job = {"job"}, .patience = 100_ms})),
              AllOf(HasSubstr("rank 1 did not find rank 0 within 100 ms: there is no "),
                    HasSubstr("rank-0.foreshard")));
}

TEST(MeetingInAFolder, RefusesAnotherJob) {
  const TemporaryFolder folder;
  const auto open = [&](std::int32_t rank, const char* job) {
    return open_store([](const std::string&) { return std::nullopt; }, {.rank = rank, .ranks = 2},
                      {.folder = folder.path().string(), .job = {job}, .patience = 500_ms});
  };
  std::thread zero([&] { EXPECT_FALSE(open(0, "gpt 1")); });
  const auto one = open(1, "gpt 2");
  zero.join();
  ASSERT_FALSE(one);
  EXPECT_THAT(one.error().message, HasSubstr("'gpt 2' instead of 'gpt 1'"));
}

TEST(LoneStore, HoldsValuesAndWaitsForNobody) {
  const auto store = lone_store();
  EXPECT_TRUE(store->set("a", "b").ok());
  EXPECT_EQ(*store->get("a", 60_s), "b");
  EXPECT_FALSE(store->get("c", 60_s));
  EXPECT_TRUE(barrier(*store, "x", 0, 1, 60_s).ok());
}

}  // namespace
}  // namespace foreshard::replay
