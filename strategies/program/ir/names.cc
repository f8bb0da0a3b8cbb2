// Tables of names; a further enumerator gets a row here.
#include <array>
#include <cstddef>

#include "strategies/program/ir/program.h"

namespace foreshard::program {
namespace {

// Indexed by enumerator.
constexpr std::array<std::string_view, 6> kPurposes{"tensor",   "context", "expert",
                                                    "pipeline", "data",    "offload"};
constexpr std::array<std::string_view, 13> kCollectives{
    "all_reduce", "all_gather", "reduce_scatter", "broadcast", "all_to_all", "send",   "receive",
    "exchange",   "shift",      "token_exchange", "to_host",   "from_host",  "on_host"};
constexpr std::array<std::string_view, 5> kMemoryKinds{"parameters", "gradients", "optimizer",
                                                       "activations", "buffers"};

template <class Enum, std::size_t n>
std::optional<Enum> find(const std::array<std::string_view, n>& names, std::string_view name) {
  for (std::size_t i = 0; i < n; ++i)
    if (names[i] == name) return static_cast<Enum>(i);
  return std::nullopt;
}

}  // namespace

std::string_view name_of(Purpose purpose) {
  return kPurposes[static_cast<std::size_t>(purpose)];
}
std::string_view name_of(CollectiveKind kind) {
  return kCollectives[static_cast<std::size_t>(kind)];
}
std::string_view name_of(MemoryKind kind) {
  return kMemoryKinds[static_cast<std::size_t>(kind)];
}

std::string_view name_of_operation(CollectiveKind kind) {
  const bool is_transfer = kind == CollectiveKind::kSend || kind == CollectiveKind::kReceive;
  return is_transfer ? "transfer" : name_of(kind);
}

std::optional<Purpose> find_purpose(std::string_view name) {
  return find<Purpose>(kPurposes, name);
}
std::optional<CollectiveKind> find_collective(std::string_view name) {
  return find<CollectiveKind>(kCollectives, name);
}
std::optional<MemoryKind> find_memory_kind(std::string_view name) {
  return find<MemoryKind>(kMemoryKinds, name);
}

}  // namespace foreshard::program
