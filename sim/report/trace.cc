// Chooses the format of a trace (trace.h), for predict.cc.
#include "sim/report/trace.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>

#include "sim/report/internal/trace_formats.h"

namespace foreshard::report {
namespace {

struct Format {
  std::string_view ending;
  Status (*write)(NewFileByName&, const sim::Prediction&, const program::Program&);
};

constexpr auto kFormats = std::to_array<Format>({
    {".json", write_json_trace},
    {".pftrace", write_perfetto_trace},
});

std::string ending_of(const std::filesystem::path& path) {
  return (path.extension() == ".gz" ? path.stem() : path).extension().string();
}

}  // namespace

std::string name_of_class(const sim::DeviceClass& one) {
  return fmt::format("{}: rank {}{}", one.role, one.representative,
                     one.count > 1 ? fmt::format(" and {} like it", one.count - 1) : "");
}

std::vector<std::string_view> trace_endings() {
  std::vector<std::string_view> endings;
  endings.reserve(kFormats.size());
  for (const Format& format : kFormats) endings.push_back(format.ending);
  return endings;
}

Status check_ending(const std::filesystem::path& path, std::span<const std::string_view> endings) {
  if (std::ranges::find(endings, ending_of(path)) != endings.end()) return {};
  return Error{Error::Code::kInvalidInput,
               fmt::format("'{}' does not say what kind of time line to write: let its name end in "
                           "{}, with or without .gz",
                           path.string(), fmt::join(endings, " or "))};
}

Status write_trace(const std::filesystem::path& path, const sim::Prediction& prediction,
                   const program::Program& program) {
  FORESHARD_TRY(check_ending(path, trace_endings()));
  const auto* format = std::ranges::find(kFormats, ending_of(path), &Format::ending);
  FORESHARD_ASSIGN(auto file, NewFileByName::begin(path));
  FORESHARD_TRY(format->write(file, prediction, program));
  return file.finish();
}

}  // namespace foreshard::report
