#include "validate/replay/together.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "strategies/program/ir/group.h"

namespace foreshard::replay {
namespace {

using Json = nlohmann::json;

Json numbers(const std::vector<Seconds>& times) {
  Json out = Json::array();
  for (const Seconds time : times) out.push_back(time.in_base());
  return out;
}

// The list of times at `key`; nothing if it is not a list of numbers.
std::optional<std::vector<Seconds>> times_in(const Json& json, const char* key) {
  std::vector<Seconds> out;
  if (!json.contains(key) || !json[key].is_array()) return std::nullopt;
  for (const Json& one : json[key]) {
    if (!one.is_number()) return std::nullopt;
    out.push_back(Seconds::from_base(one));
  }
  return out;
}

// Takes the elementwise maximum of `last` and `times`. \return false if their sizes differ.
bool take_later(std::vector<Seconds>& last, const std::vector<Seconds>& times) {
  if (last.empty()) last = times;
  if (last.size() != times.size()) return false;
  for (std::size_t i = 0; i < last.size(); ++i) last[i] = std::max(last[i], times[i]);
  return true;
}

}  // namespace

std::string communications_of(const RankPlan& plan, const Samples& samples) {
  Json all = Json::array();
  for (std::size_t i = 0; i < plan.operations.size(); ++i) {
    const Operation& operation = plan.operations[i];
    if (operation.communicator < 0) continue;
    const auto place = static_cast<std::size_t>(operation.communicator);
    all.push_back({{"instance", i},
                   {"communicator", plan.communicators[place].number},
                   {"tag", program::tag_of(plan.task(i))},
                   {"ordinal", operation.ordinal},
                   {"start", numbers(samples.starts_of(i))},
                   {"finish", numbers(samples.finishes_of(i))}});
  }
  std::string text;
  Json::to_cbor(all, text);
  return text;
}

bool Together::add(std::int32_t rank, std::string_view text) {
  const Json all = Json::from_cbor(text, true, false);
  if (!all.is_array()) return false;
  for (const Json& one : all) {
    if (!one.is_object()) return false;
    for (const char* key : {"instance", "communicator", "ordinal"})
      if (!one.contains(key) || !one[key].is_number_integer()) return false;
    if (!one.contains("tag") || !one["tag"].is_string()) return false;
    const auto start = times_in(one, "start"), finish = times_in(one, "finish");
    if (!start || !finish) return false;
    const Key key{one["communicator"], one["tag"], one["ordinal"]};
    Lasts& lasts = lasts_[key];
    if (!take_later(lasts.start, *start) || !take_later(lasts.finish, *finish)) return false;
    members_[rank].push_back({one["instance"], key});
  }
  return true;
}

void Together::fill(std::int32_t rank, std::vector<measure::TaskTimes>& tasks) const {
  const auto members = members_.find(rank);
  if (members == members_.end()) return;
  for (const auto& [instance, key] : members->second) {
    const Lasts& lasts = lasts_.at(key);
    const std::vector<Seconds> took = differences(lasts.finish, lasts.start);
    if (instance >= tasks.size() || took.empty()) continue;
    tasks[instance].lasted = std::max(Seconds(), measure::quantile(took, 0.5));
  }
}

}  // namespace foreshard::replay
