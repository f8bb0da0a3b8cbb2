#include "validate/replay/watchdog.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "base/quantity.h"

#include "strategies/program/ir/group.h"

namespace foreshard::replay {
namespace {

using Json = nlohmann::json;

Seconds now() {
  return Seconds::from_base(
      std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count());
}

constexpr double kAlone = 10;      // patience with work that a rank does alone, in patiences
constexpr double kNewsEach = 0.1;  // time between two exchanges of reports, in patiences

std::chrono::duration<double> duration(Seconds time) {
  return std::chrono::duration<double>(time / 1_s);
}

std::string name(std::int32_t rank) {
  return "rank " + std::to_string(rank);
}

std::string position(const Place& place) {
  if (!place.alone.empty()) return "is " + place.stage + ": it " + place.alone;
  if (place.what.empty()) return "is " + place.stage;
  return (place.communicates() ? "waits in " : "is in ") + place.what;
}

// The ranks for which `place` waits: members that are not in its operation. Ranks that do not
// answer come first, then ranks that wait for nobody.
std::vector<std::int32_t> missing_from(const Place& place,
                                       const std::map<std::int32_t, Place>& places) {
  std::vector<std::int32_t> found;
  for (const std::int32_t member : place.members) {
    const auto theirs = places.find(member);
    if (theirs == places.end() || !theirs->second.same_operation(place)) found.push_back(member);
  }
  std::ranges::stable_sort(found, {}, [&](std::int32_t member) {
    const auto theirs = places.find(member);
    if (theirs == places.end()) return 0;
    return theirs->second.communicates() ? 2 : 1;
  });
  return found;
}

// The rank from which the chain of waits is followed.
std::optional<std::int32_t> first_of_chain(std::int32_t rank,
                                           const std::map<std::int32_t, Place>& places) {
  const auto own = places.find(rank);
  if (own != places.end() && own->second.communicates()) return rank;
  for (const auto& [other, place] : places)
    if (place.communicates()) return other;
  return std::nullopt;
}

std::string without_communication(std::int32_t ranks, const std::map<std::int32_t, Place>& places) {
  std::string text = "nobody waits in a communication:";
  constexpr std::int32_t kShown = 16;
  for (std::int32_t rank = 0; rank < std::min(ranks, kShown); ++rank) {
    const auto place = places.find(rank);
    text += (rank == 0 ? " " : ", ") + name(rank) + " " +
            (place == places.end() ? "does not answer" : position(place->second));
  }
  if (ranks > kShown) text += ", ... (" + std::to_string(ranks) + " ranks)";
  std::vector<std::int32_t> silent;
  for (std::int32_t rank = 0; rank < ranks; ++rank)
    if (!places.contains(rank)) silent.push_back(rank);
  if (silent.size() == 1) text += "; " + name(silent[0]) + " is the culprit";
  std::vector<std::int32_t> late;
  for (const auto& [rank, place] : places)
    if (!place.alone.empty()) late.push_back(rank);
  if (silent.empty() && late.size() == 1) text += "; the others wait for " + name(late[0]);
  return text;
}

}  // namespace

Place place_of(const RankPlan& plan, std::int64_t instance, std::string stage) {
  Place place{.stage = std::move(stage)};
  const auto index = static_cast<std::size_t>(instance);
  if (instance < 0 || index >= plan.operations.size()) return place;
  place.what = describe(plan, index);
  const Operation& operation = plan.operations[index];
  if (operation.communicator < 0) return place;
  const Communicator& communicator =
      plan.communicators[static_cast<std::size_t>(operation.communicator)];
  place.communicator = communicator.number;
  place.ordinal = operation.ordinal;
  place.tag = program::tag_of(plan.task(index));
  place.members = communicator.members;
  return place;
}

std::string to_text(const Place& place) {
  return Json{
      {"stage", place.stage},     {"alone", place.alone}, {"communicator", place.communicator},
      {"ordinal", place.ordinal}, {"tag", place.tag},     {"members", place.members},
      {"what", place.what}}
      .dump();
}

std::optional<Place> place_from_text(std::string_view text) {
  const auto parsed = parsed_json(text);
  if (!parsed || !parsed->is_object()) return std::nullopt;
  const Json& json = *parsed;
  const auto has = [&](const char* key, bool (Json::*is)() const noexcept) {
    return json.contains(key) && (json[key].*is)();
  };
  for (const char* key : {"stage", "alone", "tag", "what"})
    if (!has(key, &Json::is_string)) return std::nullopt;
  for (const char* key : {"communicator", "ordinal"})
    if (!has(key, &Json::is_number_integer)) return std::nullopt;
  if (!has("members", &Json::is_array)) return std::nullopt;
  Place place{.stage = json["stage"],
              .alone = json["alone"],
              .communicator = json["communicator"],
              .ordinal = json["ordinal"],
              .tag = json["tag"],
              .what = json["what"]};
  for (const Json& member : json["members"]) {
    if (!member.is_number_integer()) return std::nullopt;
    place.members.push_back(member);
  }
  return place;
}

std::string judgement(std::int32_t rank, std::int32_t ranks,
                      const std::map<std::int32_t, Place>& places) {
  const auto first = first_of_chain(rank, places);
  if (!first) return without_communication(ranks, places);
  std::string text;
  if (*first != rank) text = name(rank) + " " + position(places.at(rank)) + ", while ";
  std::vector<std::int32_t> path{*first};
  for (;;) {
    const std::int32_t current = path.back();
    const Place& place = places.at(current);
    text += (path.size() == 1 ? name(current) + " " : "") + position(place);
    const std::vector<std::int32_t> missing = missing_from(place, places);
    if (missing.empty())
      return text + ", as all members of it do: the network or the library hangs";
    const std::int32_t next = missing[0];
    text += " for " + name(next);
    if (missing.size() > 1) text += " (and " + std::to_string(missing.size() - 1) + " more)";
    if (std::ranges::find(path, next) != path.end())
      return text + ": ranks on this way wait for each other";
    const auto theirs = places.find(next);
    if (theirs == places.end())
      return text + ", which does not answer; " + name(next) + " is the culprit";
    text += ", which ";
    if (!theirs->second.communicates())
      return text + position(theirs->second) + "; " + name(next) + " is the culprit";
    path.push_back(next);
  }
}

Watchdog::Watchdog(const WatchdogOptions& options, const RankPlan& plan, Store& store, Watch& watch,
                   std::function<void(const std::string& message)> end)
    : options_(options),
      plan_(plan),
      store_(store),
      watch_(watch),
      end_(std::move(end)),
      last_beat_(now()),
      thread_([this] { run(); }) {}

Watchdog::~Watchdog() {
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Watchdog::enter(std::string stage) {
  const std::lock_guard lock(mutex_);
  stage_ = std::move(stage);
  inside_ = true;
  last_beat_ = now();
}

void Watchdog::enter_preparation(std::string stage) {
  enter(std::move(stage));
  const std::lock_guard lock(mutex_);
  preparing_ = true;
}

void Watchdog::leave() {
  const std::lock_guard lock(mutex_);
  stage_ = "between steps";
  inside_ = false;
  preparing_ = false;
  watch_.alone(nullptr);
  watch_.at(-1);
}

Seconds Watchdog::answers() const {
  return std::min(options_.answers, 0.25 * options_.patience);
}

bool Watchdog::raised(Seconds time) {
  const std::uint64_t beats = watch_.beats();
  if (beats != last_beats_) {
    last_beats_ = beats;
    last_beat_ = time;
  }
  const Seconds silent = time - (preparing_ ? std::max(last_beat_, last_news_) : last_beat_);
  const double times = preparing_ && watch_.alone() != nullptr ? kAlone : 1;
  // The rest of the patience is for the answers of the others.
  return inside_ && silent > times * options_.patience - answers();
}

// One report of progress is enough for all ranks. The reports are numbered keys, each set by
// whichever rank comes first, so a rank sends a few messages per period, however many ranks there
// are.
void Watchdog::exchange_news(Seconds time) {
  if (time - asked_ < kNewsEach * options_.patience) return;
  asked_ = time;
  const auto key = [&] { return "goes-on/" + std::to_string(news_); };
  std::string who;
  for (auto said = store_.look(key()); said && *said; said = store_.look(key())) {
    who = **std::move(said);
    ++news_;
  }
  Seconds since;
  {
    const std::lock_guard lock(mutex_);
    if (!preparing_) return;
    if (!who.empty()) last_news_ = time;
    since = time - last_beat_;
  }
  const char* alone = watch_.alone();
  if (alone != nullptr && since > kAlone * options_.patience) return;
  if (alone != nullptr || watch_.beats() != told_beats_) {
    told_beats_ = watch_.beats();
    const std::string own = name(options_.rank);
    static_cast<void>(store_.set(key(), alone == nullptr ? own : own + ", which " + alone));
  } else if (!who.empty() && options_.tell && since > options_.patience &&
             time - noted_ > options_.patience) {
    noted_ = time;
    options_.tell("has waited for " + format(since) + " while it prepares; last heard of was " +
                  who);
  }
}

void Watchdog::run() {
  const Seconds tick = std::clamp(0.02 * options_.patience, 5_ms, 200_ms);
  std::optional<Seconds> ended_since;
  for (;;) {
    bool alarm = false, preparing = false;
    {
      std::unique_lock lock(mutex_);
      if (changed_.wait_for(lock, duration(tick), [&] { return over_; })) return;
      alarm = raised(now());
      preparing = preparing_;
    }
    if (preparing) exchange_news(now());
    if (const auto ended = store_.ended()) {
      // The executor may notice the end itself, or be asked to stop; inside a collective it cannot.
      watch_.stop();
      if (!ended_since) ended_since = now();
      if (now() - *ended_since > answers()) return end_(*ended);
      continue;
    }
    if (!alarm) {
      const auto others = store_.look("alarm");
      alarm = others && *others;
    }
    if (alarm) return end_(diagnosis());
  }
}

std::string Watchdog::diagnosis() {
  std::map<std::int32_t, Place> places;
  std::string since;
  {
    const std::lock_guard lock(mutex_);
    since = format(now() - last_beat_);
    Place& own = places[options_.rank];
    own = place_of(plan_, inside_ ? watch_.instance() : -1, stage_);
    if (const char* alone = watch_.alone(); preparing_ && alone != nullptr) own.alone = alone;
  }
  const auto key = [](std::int32_t rank) { return "place/" + std::to_string(rank); };
  // Another rank may have raised the alarm first.
  static_cast<void>(store_.set("alarm", since));
  const auto alarm = store_.look("alarm");
  if (alarm && *alarm) since = **alarm;
  static_cast<void>(store_.set(key(options_.rank), to_text(places.at(options_.rank))));
  const Seconds end = now() + 0.8 * answers();
  while (places.size() < static_cast<std::size_t>(options_.ranks) && now() < end) {
    for (std::int32_t rank = 0; rank < options_.ranks; ++rank) {
      if (places.contains(rank)) continue;
      const auto text = store_.look(key(rank));
      if (!text || !*text) continue;
      if (auto place = place_from_text(**text)) places.emplace(rank, *std::move(place));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return "nothing finished for " + since + ": " + judgement(options_.rank, options_.ranks, places);
}

void last_words(Store& store, std::int32_t rank, std::int32_t ranks, Seconds patience) {
  const auto key = [](std::int32_t of) { return "said/" + std::to_string(of); };
  if (!store.set(key(rank), "").ok()) return;
  const Seconds end = now() + patience;
  for (std::int32_t other = 0; other < ranks && now() < end;) {
    const auto said = store.look(key(other));
    if (!said) return;
    if (*said)
      ++other;
    else
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

}  // namespace foreshard::replay
