// libFuzzer: any text is either refused or a Program that writes and reads back the same; verify
// and the expander take whatever the reader accepts.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "tests/fuzz/fuzzer.h"

#include "strategies/program/ir/expand.h"
#include "strategies/program/ir/json.h"
#include "strategies/program/ir/verify.h"

namespace {

// Bounds the time of one input: legal programs may run for long.
bool is_small(const foreshard::program::Program& program) {
  constexpr std::int64_t kMost = 100000;
  std::int64_t work = static_cast<std::int64_t>(program.roles.size());
  for (const auto& axis : program.mesh)
    if ((work *= axis.size) > kMost) return false;
  for (const auto& role : program.roles)
    for (const auto& call : role.calls) {
      if (!call.block.valid() || call.block.index() >= program.blocks.size()) return true;
      work += std::int64_t{call.repeat} *
              static_cast<std::int64_t>(program.blocks[call.block.index()].tasks.size());
      if (work > kMost) return false;
    }
  return true;
}

}  // namespace

FORESHARD_FUZZER(fuzz_program) {
  using namespace foreshard::program;
  const auto program = program_from_json({reinterpret_cast<const char*>(data), size});
  if (!program || !is_small(*program) || !verify(*program).ok()) return 0;
  const std::string text = to_json(*program);
  const auto back = program_from_json(text);
  FORESHARD_CHECK(back && *back == *program && to_json(*back) == text);
  const Expander expander(*program);
  for (std::size_t role = 0; role < program->roles.size(); ++role)
    expander.memory_events(role, expander.expand(role));
  return 0;
}
