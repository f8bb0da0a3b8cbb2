#include "strategies/checkpoint/internal/json_node.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <set>
#include <vector>

namespace foreshard::checkpoint::internal {

void JsonNode::fault(const std::string& why) const {
  throw JsonFault{place_.empty() ? why : place_ + ": " + why};
}

void JsonNode::expected(const std::string& what) const {
  fault(fmt::format("expected {}, found {}", what, value_.type_name()));
}

const JsonNode& JsonNode::fields(std::initializer_list<std::string_view> required,
                                 std::initializer_list<std::string_view> optional) const {
  std::vector<std::string_view> legal(required);
  legal.insert(legal.end(), optional.begin(), optional.end());
  for (const auto& [key, member] : members().items())
    if (std::ranges::find(legal, std::string_view(key)) == legal.end())
      fault(fmt::format("unknown key '{}'; legal: {}", key.substr(0, 60), fmt::join(legal, ", ")));
  for (const std::string_view key : required)
    if (!has(key)) fault(fmt::format("key '{}' is missing", key));
  return *this;
}

bool JsonNode::has(std::string_view key) const {
  return value_.is_object() && value_.contains(key);
}

JsonNode JsonNode::operator[](std::string_view key) const {
  return JsonNode(*value_.find(key),
                  place_.empty() ? std::string(key) : fmt::format("{}.{}", place_, key));
}

std::size_t JsonNode::size() const {
  if (!value_.is_array()) expected("an array");
  return value_.size();
}

JsonNode JsonNode::at(std::size_t index) const {
  return JsonNode(value_[index], fmt::format("{}[{}]", place_, index));
}

const Json& JsonNode::members() const {
  if (!value_.is_object()) expected("an object");
  return value_;
}

std::string JsonNode::text() const {
  if (!value_.is_string()) expected("a text");
  return value_.get<std::string>();
}

std::int64_t JsonNode::integer(std::int64_t least, std::int64_t most) const {
  if (!value_.is_number_integer()) expected("a whole number");
  const bool huge = value_.is_number_unsigned() &&
                    value_.get<std::uint64_t>() >
                        static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (huge || value_.get<std::int64_t>() < least || value_.get<std::int64_t>() > most)
    fault(fmt::format("{} is not in [{}, {}]", value_.dump(), least, most));
  return value_.get<std::int64_t>();
}

Json parse(std::string_view text) {
  constexpr int kMostDepth = 16;
  std::vector<std::set<std::string>> keys;
  const auto guard = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > kMostDepth) throw JsonFault{"is nested too deep"};
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key) {
      const auto& key = parsed.get_ref<const std::string&>();
      if (!keys.back().insert(key).second)
        throw JsonFault{fmt::format("key '{}' appears twice", key.substr(0, 60))};
    }
    return true;
  };
  try {
    return Json::parse(text, guard);
  } catch (const Json::parse_error& error) {
    throw JsonFault{fmt::format("is not valid JSON at its byte {}", error.byte)};
  } catch (const Json::out_of_range&) {  // 1e999
    throw JsonFault{"has a number that is out of range"};
  }
}

}  // namespace foreshard::checkpoint::internal
