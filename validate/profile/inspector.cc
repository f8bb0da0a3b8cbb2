// Reads dumps of the NCCL Inspector (inspector.h), among the files of `foreshard calibrate
// --profile`. Times in the file are microseconds, sizes bytes; a line that is not JSON is an error
// with its number.
#include "validate/profile/inspector.h"

#include <algorithm>
#include <array>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <tuple>
#include <utility>

#include "base/json.h"

#include "validate/profile/internal/json_text.h"

namespace foreshard::profile {
namespace {

using internal::text_in;
using Json = nlohmann::json;
using program::CollectiveKind;

struct Known {
  std::string_view name;
  CollectiveKind kind;
  bool of_one_rank;  // whether its size is one rank's part
};
constexpr auto kKnown = std::to_array<Known>({
    {"AllReduce", CollectiveKind::kAllReduce, false},
    {"AllGather", CollectiveKind::kAllGather, true},
    {"ReduceScatter", CollectiveKind::kReduceScatter, true},
    {"Broadcast", CollectiveKind::kBroadcast, false},
});

// Splits the text into its top-level JSON objects, by matching braces outside of strings.
class Objects {
 public:
  explicit Objects(std::string_view text) : text_(text) {}

  // The next object, which begins in line(); nothing at the end, or if it is not closed.
  std::optional<std::string_view> next() {
    while (at_ < text_.size() && text_[at_] != '{') skip();
    const std::size_t begin = at_;
    first_ = line_;
    int depth = 0;
    bool quoted = false;
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (quoted && c == '\\' && at_ + 1 < text_.size()) {
        skip();
      } else if (c == '"') {
        quoted = !quoted;
      } else if (!quoted && c == '{') {
        ++depth;
      } else if (!quoted && c == '}' && --depth == 0) {
        skip();
        return text_.substr(begin, at_ - begin);
      }
      skip();
    }
    open_ = depth > 0;
    return std::nullopt;
  }
  std::size_t line() const { return first_; }
  bool left_open() const { return open_; }

 private:
  void skip() {
    if (text_[at_] == '\n') ++line_;
    ++at_;
  }
  std::string_view text_;
  std::size_t at_ = 0;
  std::size_t line_ = 1;
  std::size_t first_ = 1;
  bool open_ = false;
};

std::optional<double> number_in(const Json& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return std::nullopt;
  return found->get<double>();
}
struct Header {
  std::string id;
  std::int64_t ranks = 0;
  std::int64_t nodes = 1;
};

}  // namespace

bool is_inspector(std::string_view text) {
  const auto keys = first_object_keys(text);
  const auto has = [&](std::string_view key) { return std::ranges::find(keys, key) != keys.end(); };
  return (has("header") || has("coll_perf") || has("p2p_perf")) && !has("traceEvents");
}

Result<std::vector<InspectedCollective>> read_inspector(std::string_view text,
                                                        std::string_view name) {
  Objects objects(text);
  const auto fault = [&](const std::string& why) {
    return Error{Error::Code::kInvalidInput,
                 std::string(name) + ":" + std::to_string(objects.line()) + ": " + why};
  };
  Header header;
  // Keyed by communicator and sequence number.
  std::map<std::tuple<std::string, std::string, std::int64_t>, InspectedCollective> all;
  while (const auto record = objects.next()) {
    const auto parsed = parsed_json(*record);
    if (!parsed) return fault(parsed.error().message);
    const Json& json = *parsed;
    constexpr double kMost = 1e15;
    if (const auto found = json.find("header"); found != json.end() && found->is_object()) {
      const auto ranks = number_in(*found, "n_ranks");
      if (!ranks || !(*ranks >= 1) || *ranks > kMost)
        return fault("header.n_ranks: is no number of ranks");
      header = {.id = text_in(*found, "id"),
                .ranks = static_cast<std::int64_t>(*ranks),
                .nodes = static_cast<std::int64_t>(
                    std::clamp(number_in(*found, "nnodes").value_or(1), 1.0, kMost))};
    }
    const auto perf = json.find("coll_perf");
    if (perf == json.end() || !perf->is_object()) continue;
    if (header.ranks == 0) return fault("coll_perf: no header says how many ranks there are");
    const std::string operation = text_in(*perf, "coll");
    const auto* known = std::ranges::find(kKnown, operation, &Known::name);
    if (known == kKnown.end()) continue;  // a collective that Programs do not have
    const auto size = number_in(*perf, "coll_msg_size_bytes");
    const auto time = number_in(*perf, "coll_exec_time_us");
    if (!size || *size < 0 || *size > kMost)
      return fault("coll_perf.coll_msg_size_bytes: is no size");
    if (!time || *time < 0 || *time > kMost)
      return fault("coll_perf.coll_exec_time_us: is no time in microseconds");
    if (*size == 0 || *time == 0) continue;  // below the clock's resolution
    const double parts = known->of_one_rank ? static_cast<double>(header.ranks) : 1;
    const InspectedCollective one{.kind = known->kind,
                                  .bytes = Bytes::from_base(*size * parts),
                                  .ranks = header.ranks,
                                  .nodes = header.nodes,
                                  .time = *time * 1_us};
    const auto number = static_cast<std::int64_t>(std::clamp(
        number_in(*perf, "coll_sn").value_or(static_cast<double>(all.size())), 0.0, kMost));
    const auto [place, added] = all.try_emplace({header.id, operation, number}, one);
    if (!added && one.time < place->second.time) place->second = one;
  }
  if (objects.left_open()) return fault("ends inside of a record");
  if (all.empty()) return fault("holds no collective that Programs have");
  std::vector<InspectedCollective> result;
  result.reserve(all.size());
  for (const auto& entry : all) result.push_back(entry.second);
  return result;
}

}  // namespace foreshard::profile
