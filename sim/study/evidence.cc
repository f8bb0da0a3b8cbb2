// Finds how much of a step rests on parameters that nobody measured on its devices, and says so
// (evidence.h), for every report of a time.
#include "sim/study/evidence.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/grouped.h"
#include "base/text.h"

#include "sim/study/interval.h"

namespace foreshard::study {
namespace {

using Json = nlohmann::ordered_json;

// A remark is made if more than this part of a step is unmeasured.
constexpr double kMostOfStep = 0.5;
// A device with less than this part of a step is not named.
constexpr double kWorthNaming = 0.05;

}  // namespace

bool Unmeasured::is_most() const {
  return share > kMostOfStep;
}

std::string share_remark(double share, std::string_view on) {
  return fmt::format(
      "{:.0f} % of the step rests on parameters that were not measured on its devices: {}",
      100 * share, on);
}

Unmeasured unmeasured_in(const sim::Prediction& prediction) {
  Unmeasured of;
  if (!(prediction.step > 0_s)) return of;
  std::map<std::pair<std::string, std::string_view>, double> shares;
  for (const sim::CriticalUse& use : prediction.critical_uses) {
    if (!is_unmeasured(use.evidence)) continue;
    const double share = use.time / prediction.step;
    of.share += share;
    shares[{use.device, words_of(use.evidence)}] += share;
  }
  std::vector<std::pair<double, std::string>> named;
  named.reserve(shares.size());
  for (const auto& [key, share] : shares)
    named.emplace_back(share, fmt::format("{} ({})", key.first, key.second));
  std::ranges::stable_sort(named, std::greater{}, [](const auto& one) { return one.first; });
  for (const auto& [share, words] : named)
    if (of.on.empty() || share >= kWorthNaming) of.on += (of.on.empty() ? "" : ", ") + words;
  for (const sim::Warning& warning : prediction.warnings)
    if (warning.code == kIntervalWarning) of.remarks.push_back(warning.message);
  return of;
}

std::vector<std::string> evidence_remarks(std::span<const Unmeasured* const> steps,
                                          std::string_view what) {
  if (steps.size() == 1) return steps.front()->remarks;
  struct Range {
    std::size_t count = 0;
    double low = 1;
    double high = 0;
  };
  std::map<std::string, Range> by_devices;
  std::vector<std::pair<std::string, std::size_t>> others;  // remark, steps
  for (const Unmeasured* one : steps) {
    if (one->is_most()) {
      Range& range = by_devices[one->on];
      ++range.count;
      range.low = std::min(range.low, one->share);
      range.high = std::max(range.high, one->share);
    }
    for (std::size_t i = one->is_most() ? 1 : 0; i < one->remarks.size(); ++i) {
      const auto known =
          std::ranges::find(others, one->remarks[i], &std::pair<std::string, std::size_t>::first);
      if (known == others.end())
        others.emplace_back(one->remarks[i], 1);
      else
        ++known->second;
    }
  }
  const auto among = [&](std::size_t count) {
    const auto all = std::ssize(steps);
    return count == steps.size()
               ? fmt::format("all {} {}", grouped(all), plural(all, what))
               : fmt::format("{} of {} {}", grouped(static_cast<std::int64_t>(count)), grouped(all),
                             plural(all, what));
  };
  std::vector<std::pair<std::string, Range>> ranges(by_devices.begin(), by_devices.end());
  std::ranges::stable_sort(ranges, std::greater{}, [](const auto& one) { return one.second.high; });
  std::vector<std::string> remarks;
  for (const auto& [on, range] : ranges) {
    const double low = std::round(100 * range.low);
    const double high = std::round(100 * range.high);
    remarks.push_back(fmt::format(
        "{}{:.0f} % of the step of {} rests on parameters that were not measured on its "
        "devices: {}",
        low < high ? fmt::format("{:.0f} to ", low) : "", high, among(range.count), on));
  }
  for (const auto& [remark, count] : others)
    remarks.push_back(count == steps.size() ? remark : fmt::format("{}: {}", among(count), remark));
  return remarks;
}

std::string evidence_text(std::span<const Unmeasured* const> steps, std::string_view what) {
  std::string text;
  for (const std::string& remark : evidence_remarks(steps, what)) text += "! " + remark + "\n";
  return text;
}

Json evidence_json(const Unmeasured& of) {
  return {{"unmeasured_share", of.share}, {"unmeasured_on", of.on}, {"remarks", of.remarks}};
}

Unmeasured unmeasured_in(const Json& json) {
  return {.share = json.at("unmeasured_share").get<double>(),
          .on = json.at("unmeasured_on").get<std::string>(),
          .remarks = json.at("remarks").get<std::vector<std::string>>()};
}

}  // namespace foreshard::study
