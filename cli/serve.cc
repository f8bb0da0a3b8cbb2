#include "cli/serve.h"

#include <utility>

#include "base/caller.h"
#include "cli/commands.h"
#include "cli/output.h"

namespace foreshard::cli {
namespace {

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
    FORESHARD_TRY(StudyOptions::of(study_.asked()));  // what came from stdin cannot be read again
    Turns turns;
    ServedStudy served(study_, environment, turns);
    FORESHARD_TRY(served.load());
    FORESHARD_ASSIGN(const auto server, http::Server::start(static_cast<std::uint16_t>(port_),
                                                            [&](const auto& request) {
                                                              return served.answer(request);
                                                            }));
    FORESHARD_TRY(write_result({}, server->link() + "\n"));
    note("open the link in a browser on this machine; Ctrl-C ends the server");
    // This thread simulates: its heap has large pages (main.cc), and stays warm.
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
