// A study that a change makes unsound, and what the program says of it.
#pragma once

#include <filesystem>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <string>

#include "tests/cli/program.h"

namespace foreshard::cli {

/// A sound study of 16 devices; `changes` replaces the text of its parts.
inline std::string study(const std::map<std::string, std::string>& changes = {}) {
  std::map<std::string, std::string> parts{
      {"cluster",
       "  name: two-nodes\n  nodes: 2\n  node: dgx-a100-80gb\n  fabric: {kind: single-switch}\n"},
      {"model",
       "  name: small\n  layers: 8\n  hidden: 1024\n  heads: 16\n  vocabulary: 1000\n"
       "  sequence: 512\n"},
      {"strategy",
       "  tensor_parallel: 2\n  pipeline_parallel: 2\n  data_parallel: 4\n  global_batch: 16\n"}};
  for (const auto& [part, text] : changes) parts[part] = text;
  return "cluster:\n" + parts["cluster"] + "model:\n" + parts["model"] + "strategy:\n" +
         parts["strategy"];
}

inline void expect_refused(const std::string& text, const std::string& message,
                           const std::string& help = "") {
  const TemporaryFolder folder;
  const std::string file = folder.write("study.yaml", text).string();
  const std::string result = (folder.path() / "result.json").string();
  const std::string trace = (folder.path() / "trace.json").string();
  const Outcome outcome = foreshard("simulate '" + file + "' --format json -o '" + result +
                                    "' --trace '" + trace + "'");
  EXPECT_EQ(outcome.code, 2) << outcome.err;
  EXPECT_THAT(outcome.err, testing::HasSubstr("error: "));
  EXPECT_THAT(outcome.err, testing::HasSubstr(message));
  EXPECT_THAT(outcome.err, testing::HasSubstr(help));
  EXPECT_EQ(outcome.out, "");
  EXPECT_FALSE(std::filesystem::exists(result));
  EXPECT_FALSE(std::filesystem::exists(trace));
}

inline std::string strategy(const std::string& lines) {
  return study({{"strategy", lines}});
}

}  // namespace foreshard::cli
