#include "base/caller.h"

namespace foreshard {

void Caller::tell(Message message) {
  const std::lock_guard lock(mutex);
  messages.push_back(std::move(message));
}

void end_if_asked() {
  if (current_caller == nullptr || !current_caller->stop) return;
  const Ending ending = current_caller->stop();
  if (ending == Ending::kAtOnce ||
      (ending == Ending::kWithResults && !current_caller->keeps_results))
    throw CallEnded();
}

Status may_fork(std::string_view what) {
  if (current_caller == nullptr || current_caller->may_fork) return {};
  return Error{Error::Code::kUnsupported,
               std::string(what) +
                   ": it runs in another process, and none may be started here; "
                   "use the command foreshard"};
}

}  // namespace foreshard
