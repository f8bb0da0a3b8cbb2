#include "cli/compare_sweeps.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/file.h"
#include "base/units.h"

#include "sim/sweep/comparison.h"
#include "sim/sweep/output.h"
#include "sim/sweep/store.h"

namespace foreshard::cli {
namespace {

constexpr Bytes kLargestSweep = 512_MiB;
constexpr std::int64_t kMostPairs = 20;  // pairs of points listed in the text

Result<sweep::Results> sweep_in(const std::string& path) {
  if (sweep::is_database(path)) return sweep::read_results(path);
  FORESHARD_ASSIGN(const std::string text, read_file(path, kLargestSweep));
  auto results = sweep::results_in(text);
  if (!results) return Error{results.error().code, path + ": " + results.error().message};
  return results;
}

Status fault_in(const SweepsGiven& given) {
  const auto fault = [](std::string why) {
    return Error{Error::Code::kInvalidInput, std::move(why)};
  };
  constexpr std::array<std::string_view, 2> kAllowed{"--format", "--output"};
  for (const std::string& option : given.options)
    if (option.starts_with("--") && std::ranges::find(kAllowed, option) == kAllowed.end())
      return fault(fmt::format(
          "{} is of studies, but results of grids of them are given; leave it out", option));
  const std::string& sweep = holds_sweep(given.a) ? given.a : given.b;
  const std::string& other = holds_sweep(given.a) ? given.b : given.a;
  if (other.empty())
    return fault(
        fmt::format("{} holds results of a grid of studies: name the other ones that they "
                    "are compared with",
                    sweep));
  std::error_code status;
  if (!std::filesystem::exists(other, status)) return fault(other + ": there is no such file");
  if (!holds_sweep(other))
    return fault(
        fmt::format("{} holds results of a grid of studies, {} does not; foreshard study "
                    "SWEEP.yaml --results FILE makes them",
                    sweep, other));
  return {};
}

}  // namespace

bool holds_sweep(const std::string& path) {
  std::error_code status;
  if (!std::filesystem::is_regular_file(path, status)) return false;
  if (sweep::is_database(path)) return true;
  if (!path.ends_with(".json")) return false;
  const auto text = read_file(path, kLargestSweep);
  if (!text) return false;
  const auto json = nlohmann::json::parse(*text, nullptr, false);
  return json.is_object() && json.value("schema", nlohmann::json()) == sweep::kSweepSchema;
}

Result<std::string> compared_sweeps(const SweepsGiven& given) {
  FORESHARD_TRY(fault_in(given));
  FORESHARD_ASSIGN(const sweep::Results a, sweep_in(given.a));
  FORESHARD_ASSIGN(const sweep::Results b, sweep_in(given.b));
  FORESHARD_ASSIGN(const sweep::Comparison comparison, sweep::compare(a, b));
  return given.format == "json" ? sweep::comparison_json(a, b, comparison)
                                : sweep::comparison_text(a, b, comparison, kMostPairs);
}

}  // namespace foreshard::cli
