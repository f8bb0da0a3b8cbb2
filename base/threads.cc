#include "base/threads.h"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <unistd.h>
#include <vector>

#include "base/caller.h"

namespace foreshard {

void in_threads(std::int64_t count, const std::function<void(std::int64_t)>& work) {
  std::mutex mutex;
  std::exception_ptr first;
  const auto call = [&](std::int64_t i) {
    try {
      work(i);
    } catch (...) {
      const std::lock_guard lock(mutex);
      if (first == nullptr) first = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> threads;
    for (std::int64_t i = 1; i < std::min(count, kMostThreads); ++i) {
      try {
        threads.emplace_back([&call, i, caller = current_caller] {
          const CalledBy called(caller);
          call(i);
        });
      } catch (const std::exception&) {  // no thread, or no memory for one
        break;
      }
    }
    call(0);
  }
  if (first != nullptr) std::rethrow_exception(first);
}

std::string_view missing_resource(const std::exception_ptr& exception) noexcept {
  if (exception == nullptr) return {};
  try {
    std::rethrow_exception(exception);
  } catch (const std::bad_alloc&) {
    return "out of memory: the system gives no more; use fewer --threads, ask a smaller question, "
           "or take a machine with more (limits: ulimit -v, the job's)";
  } catch (const std::system_error& error) {
    if (error.code() != std::errc::resource_unavailable_try_again) return {};
    return "out of threads: the system starts no more; use fewer --threads, or raise its limit "
           "(ulimit -u, the job's)";
  } catch (...) {
    return {};
  }
}

void end_unanswered(std::string_view who) noexcept {
  constexpr int kBadInput = 2;
  const std::string_view missing = missing_resource(std::current_exception());
  using namespace std::string_view_literals;
  const auto parts =
      missing.empty() ? std::array{"internal error: "sv, who, "an exception that nothing answers"sv}
                      : std::array{"error: "sv, who, missing};
  for (const std::string_view part : {parts[0], parts[1], parts[2], "\n"sv}) {
    [[maybe_unused]] const auto written = ::write(STDERR_FILENO, part.data(), part.size());
  }
  if (missing.empty()) std::abort();
  ::_exit(kBadInput);
}

}  // namespace foreshard
