// Any messages to rank 0 of a search: its server goes on, and what it takes for a result or a task
// reads back the same.
#include <string_view>
#include <vector>

#include "base/check.h"
#include "tests/fuzz/fuzzer.h"
#include "tests/fuzz/words.h"
#include "tests/sim/search/rank_zero.h"

#include "sim/study/study.h"

FORESHARD_FUZZER(fuzz_team) {
  using namespace foreshard;
  using namespace foreshard::fuzz::team_test;
  static const RankZero zero;
  static const auto study =
      study::load_study({.study = "gpt-1.7b-a100-8"},
                        {.catalogue = {FORESHARD_SOURCE_DIR "/configs"}, .overrides = {}});
  FORESHARD_CHECK(study.has_value());
  static const std::vector<search::DeviceSubset> places(1);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto& message : fuzz::messages_in(text)) {
    zero.check(message);
    if (const auto task = search::candidate_in(message, *study, places))
      FORESHARD_CHECK(search::task_of(0, task->strategy)[2] == message[2]);
  }
  fuzz::speak_input(zero.port(), text, [](const auto&) {});
  return 0;
}
