#include "cli/interruption.h"

#include <csignal>
#include <string_view>
#include <unistd.h>

#include "base/caller.h"
#include "cli/exit_code.h"

namespace foreshard::cli {
namespace {

volatile std::sig_atomic_t asked_once = 0;
volatile std::sig_atomic_t has_stored = 0;

void on_signal(int) {
  if (asked_once != 0) _exit(kInterrupted);
  asked_once = 1;
  constexpr std::string_view kShown =
      "\ninterrupted: what has begun is finished and shown; once more ends at once\n";
  constexpr std::string_view kStored =
      "\ninterrupted: what has begun is finished and kept; once more ends at once\n";
  const std::string_view message = has_stored != 0 ? kStored : kShown;
  [[maybe_unused]] const auto written = write(STDERR_FILENO, message.data(), message.size());
}

}  // namespace

Interruption::Interruption(FinishedResults kept) {
  if (current_caller != nullptr) {
    current_caller->keeps_results = true;
    return;
  }
  asked_once = 0;
  has_stored = kept == FinishedResults::kStored ? 1 : 0;
  before_ = std::signal(SIGINT, on_signal);
}

Interruption::~Interruption() {
  if (current_caller != nullptr) {
    current_caller->keeps_results = false;
    return;
  }
  std::signal(SIGINT, before_);
}

bool Interruption::asked() {
  end_if_asked();  // A caller that wants no results gets none.
  return current_caller != nullptr ? current_caller->wants_an_end() : asked_once != 0;
}

}  // namespace foreshard::cli
