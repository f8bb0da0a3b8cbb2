// A library for LD_PRELOAD that lets an allocation of the program fail: of those that operator new
// makes from main on, the one whose number FAIL_ALLOCATION has, or with "12+" all from there on.
// The number of all of them goes into the file FAIL_ALLOCATION_COUNT at the end.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>

namespace {

std::atomic<long> count{0};

// main begins by setting a handler of its own.
bool main_has_begun() {
  static const std::terminate_handler at_start = std::get_terminate();
  return std::get_terminate() != at_start;
}

bool fails() {
  static const char* const wanted = std::getenv("FAIL_ALLOCATION");
  static char* rest = nullptr;
  static const long number = wanted == nullptr ? 0 : std::strtol(wanted, &rest, 10);
  if (!main_has_begun()) return false;
  const long now = ++count;
  return number > 0 && (now == number || (*rest == '+' && now > number));
}

struct AtEnd {
  ~AtEnd() {
    const char* path = std::getenv("FAIL_ALLOCATION_COUNT");
    std::FILE* file = path == nullptr ? nullptr : std::fopen(path, "w");
    if (file == nullptr) return;
    std::fprintf(file, "%ld\n", count.load());
    std::fclose(file);
  }
} at_end;

}  // namespace

void* operator new(std::size_t size) {
  void* memory = fails() ? nullptr : std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}
