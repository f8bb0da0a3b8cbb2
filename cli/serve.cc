#include "cli/serve.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <utility>

#include "base/caller.h"
#include "cli/commands.h"
#include "cli/output.h"

namespace foreshard::cli {
namespace {

// Simulations take turns on the program's first thread: its heap has large pages (main.cc), and
// what one simulation used is warm for the next one.
class Turns {
 public:
  // ServedStudy::InTurn.
  bool wait_for(const std::function<void()>& work, const std::function<bool()>& is_gone) {
    constexpr auto kBetween = std::chrono::milliseconds(20);
    Turn turn{.work = work};
    std::unique_lock lock(mutex_);
    waiting_.push_back(&turn);
    changed_.notify_all();
    while (!turn.done) {
      changed_.wait_for(lock, kBetween);
      if (turn.begun || !is_gone()) continue;
      std::erase(waiting_, &turn);
      return false;
    }
    return true;
  }

  // Does the work that others wait for, without end.
  [[noreturn]] void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return !waiting_.empty(); });
      Turn& turn = *waiting_.front();
      waiting_.pop_front();
      turn.begun = true;
      lock.unlock();
      turn.work();
      lock.lock();
      turn.done = true;
      changed_.notify_all();
    }
  }

 private:
  struct Turn {
    const std::function<void()>& work;
    bool begun = false;
    bool done = false;
  };

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Turn*> waiting_;
};

class Serve final : public Command {
 public:
  void declare(Declaration& declaration) override {
    study_.declare(declaration);
    declaration.count("--port", port_, 0, "The port to listen on; by default any that is free.");
  }

  Result<ExitCode> run(const Environment& environment) override {
    constexpr std::int64_t kMostPorts = 65535;
    if (port_ > kMostPorts) return fail("--port: must be at most 65535");
    if (current_caller != nullptr)
      return Error{Error::Code::kUnsupported,
                   "serve: it runs until Ctrl-C ends it; use the command foreshard"};
    Turns turns;
    ServedStudy served(study_, environment, [&](const auto& work, const auto& is_gone) {
      return turns.wait_for(work, is_gone);
    });
    FORESHARD_TRY(served.load());
    FORESHARD_ASSIGN(const auto server,
                     http::Server::start(static_cast<std::uint16_t>(port_),
                                         [&](const auto& request) { return served.answer(request); }));
    FORESHARD_TRY(write_result({}, server->link() + "\n"));
    note("open the link in a browser on this machine; Ctrl-C ends the server");
    turns.work();
  }

 private:
  StudyOptions study_;
  std::int64_t port_ = 0;
};

}  // namespace

std::unique_ptr<Command> make_serve() {
  return std::make_unique<Serve>();
}

}  // namespace foreshard::cli
