#include "strategies/program/ir/json.h"

#include <rapidcheck.h>

#include "tests/strategies/program_ir/samples.h"
#include "tests/test.h"

#include "strategies/program/ir/verify.h"

namespace foreshard::program::json_test {

TEST(ProgramJson, ComesBackTheSame) {
  EXPECT_TRUE(rc::check("reading what was written gives the same program and bytes",
                        [](std::uint32_t seed) {
                          std::mt19937 random(seed);
                          const Program program = random_program(random);
                          const std::string text = to_json(program);
                          const auto back = program_from_json(text);
                          if (!back) RC_FAIL(back.error().message + "\n" + text);
                          RC_ASSERT(*back == program);
                          RC_ASSERT(to_json(*back) == text);
                        }));
}

constexpr std::string_view kSmall = R"({"schema":"foreshard.program/1",
"name":"small",
"mesh":[["tensor",2]],
"streams":["compute"],
"launch_time_s":4e-06,
"totals":{"samples":1,"tokens":2048,"model_flops":1000000000000,"peak_dtype":"bf16"},
"groups":[
  {"axes":[0]}],
"blocks":[
  {"name":"layer","tasks":[
   {"name":"qkv","gemm":{"batch":1,"m":8,"n":16,"k":32,"dtype":"bf16","accumulate":false},"stream":0},
   {"name":"reduce","communication":{"kind":"all_reduce","group":0,"bytes":256,"dtype":"bf16","purpose":"tensor","tag":""},"stream":0,"after":[0]}]}],
"roles":[
  {"name":"all","ranks":"0,1","memory":[["parameters",1024]],"calls":[
   [0,0,0,4,0,1],
   [0,1,0,4,3,-1,[[0],[0,1]]]]}]}
)";

// The format by example: what docs/program-format.md shows.
TEST(ProgramJson, LooksLikeThis) {
  const auto program = value_of(program_from_json(kSmall));
  EXPECT_EQ(to_json(program), kSmall);
  EXPECT_EQ(program.roles[0].calls[1].after[1], (CallDependency{0, 1}));
  EXPECT_EQ(program.roles[0].calls[1].layer(3), 0);
}

// Hosts of different speed: each time once, with the ranks that it is of.
TEST(ProgramJson, ListsLaunchTimesWhereHostsDiffer) {
  Program program = value_of(program_from_json(kSmall));
  program.launch_time_of_rank = {4_us, 1_us, 4_us, 4_us};
  const std::string text = to_json(program);
  EXPECT_THAT(text, HasSubstr("\"launch_time_s\":4e-06,\n"
                              "\"launch_times_s\":[[1e-06,\"1\"],[4e-06,\"0,2,3\"]],\n"));
  EXPECT_EQ(value_of(program_from_json(text)).launch_time_of_rank, program.launch_time_of_rank);
}

// kSmall with `from` replaced by `to`.
std::string fault(std::string_view from, std::string_view to) {
  std::string text(kSmall);
  const auto place = text.find(from);
  if (place == std::string::npos) return "no such text";
  return message_of(program_from_json(text.replace(place, from.size(), to)));
}

TEST(ProgramJson, RefusesGarbage) {
  EXPECT_THAT(fault(kSmall, "\xff\xfe\x00"), HasSubstr("no JSON"));
  EXPECT_THAT(fault(kSmall, std::string(100000, '[')), HasSubstr("nested deeper"));
  std::string text(kSmall);
  for (std::size_t size = 0; size < text.size() - 2; size += 7)
    EXPECT_FALSE(program_from_json(std::string_view(text).substr(0, size))) << size;
}

// One or two characters of a valid text changed: refused, or a Program that verify judges without
// harm and that comes back the same.
TEST(ProgramJson, SurvivesMutations) {
  std::mt19937 random(1);
  const std::string valid = to_json(pipeline_program(2, 2, 1));
  constexpr std::string_view kCharacters = "0123456789-,:[]{}\".e ax";
  int accepted = 0;
  for (int i = 0; i < 1000; ++i) {
    std::string text = valid;
    for (int changes = 1 + i % 2; changes-- > 0;)
      text[random() % text.size()] = kCharacters[random() % kCharacters.size()];
    const auto program = program_from_json(text);
    if (!program || !verify(*program).ok()) continue;
    ++accepted;
    const auto back = program_from_json(to_json(*program));
    ASSERT_TRUE(back) << text;
    EXPECT_EQ(*back, *program);
  }
  EXPECT_GT(accepted, 10);
}

TEST(ProgramJson, DoesNotLetAShortTextAskForMuchMemory) {
  std::string lists;
  for (int i = 0; i < 100; ++i) lists += std::string(i ? "," : "") + "\"0-16777215\"";
  EXPECT_THAT(fault(R"({"axes":[0]})", R"({"ranks":[)" + lists + "]}"),
              HasSubstr("groups[0].ranks[2]: '0-16777215' makes the list longer"));
}

// 16 stages x 4 ranks here; the number of ranks does not matter to the size.
TEST(ProgramJson, IsSmallForABigStep) {
  const std::string text = to_json(pipeline_program(16, 128, 6));
  std::printf("16 stages, 128 micro-batches: %zu bytes\n", text.size());
  EXPECT_LT(text.size(), 1000000u);
}

}  // namespace foreshard::program::json_test
