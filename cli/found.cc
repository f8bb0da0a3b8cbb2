#include "cli/found.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fmt/format.h>

#include "base/file.h"
#include "base/json.h"
#include "base/limits.h"
#include "base/text.h"

namespace foreshard::cli {
namespace {

bool is_file(const std::string& path) {
  std::error_code status;
  return std::filesystem::is_regular_file(path, status);
}

}  // namespace

FoundName found_name(const std::string& name) {
  const std::size_t sign = name.rfind('#');
  if (sign == std::string::npos || is_file(name)) return {.path = name};
  FoundName found{.path = name.substr(0, sign), .is_numbered = true};
  const char* const end = name.data() + name.size();
  const auto read = std::from_chars(name.data() + sign + 1, end, found.number);
  if (read.ec != std::errc() || read.ptr != end) return {.path = name};
  return found;
}

bool holds_found(const std::string& name) {
  const FoundName found = found_name(name);
  if (!found.path.ends_with(".json") || !is_file(found.path)) return false;
  const auto text = read_file(found.path, limits::kResult);
  return text && search::is_result_schema(schema_in(*text));
}

Result<FoundStrategy> read_found(const std::string& name) {
  const FoundName wanted = found_name(name);
  FORESHARD_ASSIGN(const auto text, read_file(wanted.path, limits::kResult));
  auto result = search::read_result(text);
  if (!result)
    return Error{result.error().code, fmt::format("{}: {}", wanted.path, result.error().message)};
  const auto listed = std::ssize(result->found.simulated);
  const bool is_first =
      wanted.number == 1 &&
      !wanted.is_numbered;  // accepted for an empty list, too, whose reasons are of interest
  if (is_first || (wanted.number >= 1 && wanted.number <= listed))
    return FoundStrategy{.result = *std::move(result),
                         .index = static_cast<std::size_t>(wanted.number - 1)};
  return Error{
      Error::Code::kInvalidInput,
      listed == 0
          ? fmt::format("{}: the search found no strategy; foreshard explain {} says why", name,
                        wanted.path)
          : fmt::format(
                "{}: the result lists {} {}, numbered from 1; search with --top {} for more", name,
                listed, plural(listed, "strategy"), std::max<std::int64_t>(wanted.number, 10))};
}

}  // namespace foreshard::cli
