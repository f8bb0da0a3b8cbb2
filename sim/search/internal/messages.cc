#include "sim/search/internal/messages.h"

#include <charconv>
#include <fmt/format.h>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/yaml/describe.h"
#include "base/yaml/loader.h"

#include "sim/study/records.h"

namespace foreshard::search {
namespace {

template <class T>
bool read_number(std::string_view word, T& value) {
  const char* const end = word.data() + word.size();
  const auto read = std::from_chars(word.data(), end, value);
  return read.ec == std::errc() && read.ptr == end;
}

// A number in base units; nothing for an empty optional.
template <class T>
std::optional<double> base_of(const T& value) {
  if constexpr (requires { value.has_value(); })
    return value ? base_of(*value) : std::nullopt;
  else if constexpr (requires { value.in_base(); })
    return value.in_base();
  else
    return static_cast<double>(value);
}
template <class T>
void set_base(T& value, double base) {
  if constexpr (requires { value.has_value(); })
    set_base(value.emplace(), base);
  else if constexpr (requires { value.in_base(); })
    value = T::from_base(base);
  else
    value = static_cast<T>(base);
}

// Visits all results of a simulation, in the order in which they are sent.
template <class S, class Visit>
void each_number(S& one, const Visit& visit) {
  visit(one.step);
  visit(one.low);
  visit(one.high);
  visit(one.idle);
  visit(one.peak);
  visit(one.capacity);
  visit(one.fits);
  visit(one.tight);
  visit(one.mfu);
  visit(one.tflops_per_device);
  for (const sim::BreakdownPart& part : sim::kBreakdownParts) visit(one.breakdown.*part.time);
  visit(one.usd);
  visit(one.energy);
  visit(one.rent_of_used);
  visit(one.unmeasured.share);
}

}  // namespace

team::Words task_of(std::int64_t place, const Strategy& strategy) {
  return {"simulate", std::to_string(place), yaml::echo(strategy)};
}

Result<Candidate> candidate_in(const team::Words& task, const study::LoadedStudy& study,
                               const std::vector<Place>& places) {
  const Error fault{Error::Code::kInvalidInput, "what rank 0 asks for is no strategy of the study"};
  std::size_t place = 0;
  if (task.size() != 3 || task[0] != "simulate" || !read_number(task[1], place) ||
      place >= places.size())
    return fault;
  yaml::Loader loader;
  FORESHARD_ASSIGN(auto strategy, loader.read_text<Strategy>(task[2], "rank 0"));
  // The text lacks the framework, which has no name if it is written in place, and properties of
  // devices.
  strategy.framework = study.strategy.framework;
  strategy.one_copy_in_fp8 = study.strategy.one_copy_in_fp8;
  if (yaml::echo(strategy) != task[2]) return fault;
  return Candidate{.strategy = std::move(strategy), .estimate = {}, .place = &places[place]};
}

Simulated not_yet_simulated(const Candidate& candidate) {
  const auto devices = std::span(candidate.place->pool.devices)
                           .first(static_cast<std::size_t>(candidate.strategy.devices()));
  Simulated one{};
  one.strategy = candidate.strategy;
  one.estimate = candidate.estimate;
  one.use = candidate.place->use;
  one.order = candidate.order;
  one.devices = {devices.begin(), devices.end()};
  return one;
}

team::Words answer_of(const Result<Simulated>& found) {
  if (!found) return {"fault", found.error().message};
  team::Words words{"found"};
  // Writes the shortest text that reads back as the same number.
  each_number(*found, [&](const auto& value) {
    const auto base = base_of(value);
    words.push_back(base ? fmt::format("{}", *base) : "");
  });
  words.push_back(found->unmeasured.on);
  words.push_back(std::to_string(found->unmeasured.remarks.size()));
  words.insert(words.end(), found->unmeasured.remarks.begin(), found->unmeasured.remarks.end());
  return words;
}

std::optional<Result<Simulated>> simulated_in(const team::Words& answer,
                                              const Candidate& candidate) {
  if (answer.size() == 2 && answer[0] == "fault")
    return Result<Simulated>(Error{Error::Code::kInfeasible, answer[1]});
  if (answer.empty() || answer[0] != "found") return std::nullopt;
  Simulated one = not_yet_simulated(candidate);
  std::size_t next = 0;
  bool sound = true;
  each_number(one, [&](auto& value) {
    if (++next >= answer.size()) return;
    const std::string& word = answer[next];
    double base = 0;
    const bool is_there = !word.empty();
    sound = sound && (!is_there || read_number(word, base));
    if (is_there) set_base(value, base);
  });
  // After the numbers: the devices, the number of remarks, and the remarks.
  std::size_t remarks = 0;
  if (!sound || next + 2 >= answer.size() || !read_number(answer[next + 2], remarks) ||
      answer.size() != next + 3 + remarks)
    return std::nullopt;
  one.unmeasured.on = answer[next + 1];
  one.unmeasured.remarks.assign(answer.begin() + static_cast<std::ptrdiff_t>(next) + 3,
                                answer.end());
  return Result<Simulated>(std::move(one));
}

}  // namespace foreshard::search
