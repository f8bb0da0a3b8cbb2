#include "validate/measurement/fingerprint.h"

#include <cstdint>

#include "strategies/program/ir/json.h"

namespace foreshard::measure {

std::string fingerprint_of(const program::Program& program) {
  program::Program what = program;
  what.launch_time = {};
  for (program::Block& block : what.blocks)
    for (program::Task& task : block.tasks) task.launches = 1;
  what.launch_time_of_rank = {};
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char c : program::to_json(what)) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3;
  }
  std::string digits(16, '0');
  for (std::size_t i = digits.size(); hash != 0; hash >>= 4)
    digits[--i] = "0123456789abcdef"[hash & 15];
  return digits;
}

}  // namespace foreshard::measure
