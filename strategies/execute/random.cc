#include "strategies/execute/random.h"

namespace foreshard::execute {
namespace {

constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15ULL;

std::uint64_t mixed(std::uint64_t x) {
  x += kGolden;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

}  // namespace

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
