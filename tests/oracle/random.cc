#include "tests/oracle/random.h"

#include "base/hash.h"

namespace foreshard::execute {
std::uint64_t key_of(std::uint64_t key, std::string_view name) {
  for (const char c : name) key = mixed(key ^ static_cast<unsigned char>(c));
  return mixed(key);
}

std::uint64_t key_of(std::uint64_t key, std::int64_t number) {
  return mixed(mixed(key) ^ static_cast<std::uint64_t>(number));
}

double uniform(std::uint64_t key, std::int64_t counter) {
  const std::uint64_t bits = mixed(key ^ mixed(static_cast<std::uint64_t>(counter)));
  return static_cast<double>(bits >> 11) * 0x1.0p-53;
}

}  // namespace foreshard::execute
