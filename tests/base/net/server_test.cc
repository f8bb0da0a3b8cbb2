#include "base/net/server.h"

#include <atomic>
#include <csignal>
#include <fstream>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>

#include "base/net/message.h"
#include "tests/base/net/hostile.h"
#include "tests/test.h"

namespace foreshard::net {
namespace {

// Admits who says "job"; says every word again; leaves who says "bye".
class Echo : public Server::Service {
 public:
  explicit Echo(std::atomic<int>& lost) : lost_(lost) {}
  Result<Message> admit(Server::Peer, const Message& hello) override {
    if (hello != Message{"job"}) return Error{Error::Code::kInvalidInput, "it is no job"};
    return Message{"welcome", "here"};
  }
  bool obey(Server& server, Server::Peer peer, Message message) override {
    if (message == Message{"bye"})
      server.close(peer);
    else
      server.send(peer, message);
    return message != Message{"nonsense"};
  }
  void lost(Server&, Server::Peer) override { ++lost_; }

 private:
  std::atomic<int>& lost_;
};

class Servers : public testing::Test {
 protected:
  std::atomic<int> lost_ = 0;
  std::unique_ptr<Server> server_ = value_of(
      Server::start({.address = "127.0.0.1", .grace = 200_ms}, std::make_unique<Echo>(lost_)));

  Descriptor admitted() const {
    auto found = value_of(greet("127.0.0.1", server_->port(), {"job"}, 5_s));
    EXPECT_TRUE(found);
    EXPECT_EQ(found->welcome, Message{"here"});
    return std::move(found->socket);
  }
  static Message answer(int socket, const Message& words) {
    EXPECT_TRUE(send(socket, words));
    return receive(socket).value_or(Message{"nothing"});
  }
};

// By hand: 2 words, of 1 and 0 bytes, are 4 + 1 + 4 bytes.
TEST(Messages, AreSizesAndBytes) {
  const std::string bytes = encode({"a", ""});
  EXPECT_EQ(bytes, std::string("\x09\0\0\0\x01\0\0\0a\0\0\0\0", 13));
  EXPECT_EQ(decode(bytes.substr(kSizeBytes)), (Message{"a", ""}));
}

TEST(Messages, SurviveBeingReadBack) {
  const Message words{"set", "", "key", std::string("\0\xff", 2), std::string(70000, 'x')};
  const std::string bytes = encode(words);
  EXPECT_EQ(size_in(bytes), bytes.size() - kSizeBytes);
  EXPECT_EQ(decode(std::string_view(bytes).substr(kSizeBytes)), words);
  for (std::size_t cut = kSizeBytes; cut < 60; ++cut) {
    const auto part = decode(std::string_view(bytes).substr(kSizeBytes, cut - kSizeBytes));
    EXPECT_TRUE(!part || part->size() < words.size()) << cut;
  }
}

TEST_F(Servers, SpeakWithWhomTheyAdmit) {
  const Descriptor one = admitted(), other = admitted();
  const std::string large(1 << 20, 'x');
  EXPECT_EQ(answer(one.get(), {"a", large}), (Message{"a", large}));
  EXPECT_EQ(answer(other.get(), {}), Message{});
  EXPECT_EQ(answer(one.get(), {"bye"}), Message{"nothing"});
  EXPECT_EQ(answer(other.get(), {"nonsense"}), Message{"nothing"});
  server_.reset();
  EXPECT_EQ(lost_, 1);
}

TEST_F(Servers, SayWhyTheyRefuse) {
  EXPECT_EQ(message_of(greet("127.0.0.1", server_->port(), {"other"}, 5_s)), "it is no job");
}

TEST_F(Servers, TakeNoLargeMessages) {
  const Descriptor rank = admitted();
  EXPECT_TRUE(send_all(rank.get(), std::string("\x01\0\0\x01", 4)));  // 16 MiB and a byte
  EXPECT_FALSE(receive(rank.get()));
  const auto stranger = value_of(connect_to("127.0.0.1", server_->port(), 5_s));
  EXPECT_TRUE(send_all(stranger.get(), std::string("\x01\x10\0\0", 4)));  // 4097 bytes
  EXPECT_FALSE(receive(stranger.get()));
}

// 700 that say nothing and many that end at once: a rank is there within a second, the first ranks
// are not disturbed, and the strangers leave nothing behind.
TEST_F(Servers, AdmitRanksAmongStrangers) {
  const auto memory = [] {
    std::ifstream status("/proc/self/statm");
    long all = 0, resident = 0;
    status >> all >> resident;
    return resident * ::sysconf(_SC_PAGESIZE);
  };
  const Descriptor first = admitted();
  const long before = memory();
  for (int round = 0; round < 3; ++round) {
    const Hostile hostile(server_->port());
    const auto begin = Clock::now();
    const Descriptor rank = admitted();
    EXPECT_LT(Clock::now() - begin, std::chrono::seconds(1));
    EXPECT_EQ(answer(rank.get(), {"a"}), Message{"a"});
    EXPECT_EQ(answer(first.get(), {"b"}), Message{"b"});
    EXPECT_LT(memory() - before, 50'000'000);
  }
}

// A system that has no more files for connections: they wait, and nobody is lost.
TEST(Server, WaitsWhereTheSystemHasNoMoreFiles) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    constexpr int kFiles = 40;
    const rlimit few{kFiles, kFiles};
    if (::setrlimit(RLIMIT_NOFILE, &few) != 0) ::_exit(2);
    std::atomic<int> lost = 0;
    const auto server = Server::start({.address = "127.0.0.1"}, std::make_unique<Echo>(lost));
    if (!server) ::_exit(3);
    std::vector<Descriptor> silent;
    for (;;) {
      auto next = connect_to("127.0.0.1", (*server)->port(), 10_ms);
      if (!next) break;
      silent.push_back(*std::move(next));
    }
    if (silent.size() < 10) ::_exit(4);
    silent.erase(silent.begin(), silent.begin() + 3);  // Room for both ends of one.
    const auto rank = greet("127.0.0.1", (*server)->port(), {"job"}, 5_s);
    ::_exit(rank && *rank ? 0 : 5);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// Nor more threads: one message, and no end of the process.
TEST(Server, SaysThatThereIsNoThread) {
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const rlimit none{0, 0};
    if (::geteuid() == 0 && ::setuid(65534) != 0) ::_exit(2);
    if (::setrlimit(RLIMIT_NPROC, &none) != 0) ::_exit(3);
    std::atomic<int> lost = 0;
    const auto server = Server::start({.address = "127.0.0.1"}, std::make_unique<Echo>(lost));
    const bool told =
        !server && server.error().message.starts_with("cannot start the thread that listens");
    ::_exit(told ? 0 : 4);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

}  // namespace
}  // namespace foreshard::net
