#include "base/threads.h"

#include <atomic>
#include <stdexcept>
#include <system_error>

#include "tests/test.h"

namespace foreshard {
namespace {

TEST(InThreads, CallsEachOnce) {
  std::array<std::atomic<int>, 8> calls{};
  in_threads(8, [&](std::int64_t i) { ++calls[static_cast<std::size_t>(i)]; });
  for (const auto& one : calls) EXPECT_EQ(one, 1);
  int alone = 0;
  in_threads(0, [&](std::int64_t) { ++alone; });
  EXPECT_EQ(alone, 1);
}

// An exception of any thread reaches the caller, after the others have done their part.
TEST(InThreads, HandsExceptionsOn) {
  for (const std::int64_t thrower : {0, 1, 3}) {
    std::atomic<int> ended = 0;
    const auto work = [&](std::int64_t i) {
      if (i == thrower) throw std::bad_alloc();
      ++ended;
    };
    EXPECT_THROW(in_threads(4, work), std::bad_alloc);
    EXPECT_EQ(ended, 3);
  }
}

std::string_view said_of(const std::exception_ptr& exception) {
  return missing_resource(exception);
}

TEST(MissingResource, IsMemoryOrThreads) {
  EXPECT_THAT(std::string(said_of(std::make_exception_ptr(std::bad_alloc()))),
              HasSubstr("out of memory"));
  EXPECT_THAT(std::string(said_of(std::make_exception_ptr(std::bad_array_new_length()))),
              HasSubstr("out of memory"));
  const auto system = [](std::errc code) {
    return std::make_exception_ptr(std::system_error(std::make_error_code(code)));
  };
  EXPECT_THAT(std::string(said_of(system(std::errc::resource_unavailable_try_again))),
              HasSubstr("out of threads"));
  EXPECT_EQ(said_of(system(std::errc::permission_denied)), "");
  EXPECT_EQ(said_of(std::make_exception_ptr(std::logic_error("ours"))), "");
  EXPECT_EQ(said_of(nullptr), "");
}

}  // namespace
}  // namespace foreshard
