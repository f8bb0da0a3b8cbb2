#include "strategies/export/program_export.h"

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>

#include "tests/strategies/program_ir/samples.h"

namespace foreshard::exporting {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::HasSubstr;

class ProgramExport : public testing::Test {
 protected:
  ProgramExport() {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~ProgramExport() override { fs::remove_all(folder_); }

  std::string read_fault(const fs::path& path) const {
    const auto program = read_program(path);
    return program ? "accepted" : program.error().message;
  }

  const fs::path folder_ = fs::path(testing::TempDir()) /
                           (std::string("foreshard_export_") +
                            testing::UnitTest::GetInstance()->current_test_info()->name());
};

TEST_F(ProgramExport, ReadsWhatItWrote) {
  const auto program = program::pipeline_program(4, 8, 3);
  const auto fault = write_program(program, folder_ / "step.json");
  ASSERT_FALSE(fault) << fault->message;
  const auto back = read_program(folder_ / "step.json");
  ASSERT_TRUE(back) << back.error().message;
  EXPECT_EQ(*back, program);
}

TEST_F(ProgramExport, WritesNoFaultyProgram) {
  auto program = program::pipeline_program(2, 2, 1);
  program.roles.pop_back();
  const auto fault = write_program(program, folder_ / "step.json");
  ASSERT_TRUE(fault);
  EXPECT_THAT(fault->message, HasSubstr("(invariant 5)"));
  EXPECT_FALSE(fs::exists(folder_ / "step.json"));
}

TEST_F(ProgramExport, NamesTheFile) {
  EXPECT_THAT(read_fault(folder_ / "absent.json"), HasSubstr("absent.json"));
  std::ofstream(folder_ / "bad.json") << "{\"schema\":\"foreshard.program/1\"}";
  EXPECT_THAT(read_fault(folder_ / "bad.json"),
              AllOf(HasSubstr("bad.json"), HasSubstr("key 'name' is missing")));
  EXPECT_TRUE(write_program(program::pipeline_program(1, 1, 1), folder_ / "no" / "such.json"));
}

}  // namespace
}  // namespace foreshard::exporting
