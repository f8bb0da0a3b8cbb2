/// \file
/// Work on several threads whose exceptions reach the caller, so that a thread that gets no memory
/// does not end the program.
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <string_view>

namespace foreshard {

/// Threads beyond these are not started: no machine of one system has as many.
inline constexpr std::int64_t kMostThreads = 1024;

/// Calls `work(0)` on this thread and `work(1)` ... `work(count - 1)` on threads of their own, and
/// waits for all of them. They belong to this thread's Caller. Each call takes its tasks from what
/// all of them share: where the system gives no more threads, those that there are do the rest.
/// \return by throwing the first exception that a call threw, once all have ended.
void in_threads(std::int64_t count, const std::function<void(std::int64_t)>& work);

/// What to tell the user if `exception` says that the system gave no memory or no thread; empty for
/// other exceptions. It needs no memory itself.
std::string_view missing_resource(const std::exception_ptr& exception) noexcept;

/// Ends the process after an exception that nothing answers, in a destructor or a thread, too: with
/// the message of missing_resource() and exit code 2, else with abort(). A program makes it its
/// handler by std::set_terminate. It needs no memory itself.
/// \param who  stands before the message, such as "rank 2: ".
[[noreturn]] void end_unanswered(std::string_view who) noexcept;

}  // namespace foreshard
