#include "strategies/export/program_export.h"

#include "base/file.h"

#include "strategies/program/ir/json.h"
#include "strategies/program/ir/verify.h"

namespace foreshard::exporting {
namespace {

Error in_file(const std::filesystem::path& path, const Error& error) {
  return {error.code, path.string() + ": " + error.message};
}

}  // namespace

std::optional<Error> write_program(const program::Program& program,
                                   const std::filesystem::path& path) {
  if (const auto fault = program::verify(program)) return fault;
  return write_file(path, program::to_json(program));
}

Result<program::Program> read_program(const std::filesystem::path& path) {
  const auto text = read_file(path, static_cast<double>(program::kLargestProgramText) * 1_B);
  if (!text) return text.error();
  auto program = program::program_from_json(*text);
  if (!program) return in_file(path, program.error());
  if (const auto fault = program::verify(*program)) return in_file(path, *fault);
  return program;
}

}  // namespace foreshard::exporting
