#include "strategies/program/ir/json_node.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json.h"
#include "base/quantity.h"

namespace foreshard::program {
namespace {

using SortedJson = nlohmann::json;
using Keys = std::initializer_list<std::string_view>;

std::string in_quotes(std::string_view text) {
  return "'" + std::string(text.substr(0, 60)) + "'";
}

std::string joined(Keys a, Keys b) {
  std::string out;
  for (const auto& list : {a, b})
    for (const std::string_view key : list) out += (out.empty() ? "" : ", ") + std::string(key);
  return out;
}

[[noreturn]] void fail(const std::string& why, Error::Code code = Error::Code::kInvalidInput) {
  throw JsonFault{{code, why}};
}

}  // namespace

SortedJson parse_strictly(std::string_view text) {
  auto json = parsed_json(text);
  if (!json) fail(json.error().message);
  return *std::move(json);
}

std::string JsonNode::place() const {
  if (!parent_) return {};
  const std::string above = parent_->place();
  if (key_.empty()) return above + "[" + std::to_string(index_) + "]";
  return above.empty() ? std::string(key_) : above + "." + std::string(key_);
}

void JsonNode::fault(const std::string& why) const {
  const std::string where = place();
  fail((where.empty() ? "" : where + ": ") + why);
}

void JsonNode::expected(const std::string& what) const {
  fault("expected " + what + ", found " + value_.type_name());
}

const JsonNode& JsonNode::fields(Keys required, Keys optional) const {
  if (!value_.is_object()) expected("an object");
  for (const auto& [key, member] : value_.items()) {
    const auto is_key = [&k = key](std::string_view legal) { return legal == k; };
    if (std::none_of(required.begin(), required.end(), is_key) &&
        std::none_of(optional.begin(), optional.end(), is_key))
      fault("unknown key " + in_quotes(key) + "; legal: " + joined(required, optional));
  }
  for (const std::string_view key : required)
    if (!has(key)) fault("key " + in_quotes(key) + " is missing");
  return *this;
}

bool JsonNode::has(std::string_view key) const {
  return value_.is_object() && value_.contains(key);
}

JsonNode JsonNode::operator[](std::string_view key) const {
  return JsonNode(*value_.find(key), *this, key, 0);
}

std::vector<std::string> JsonNode::keys() const {
  if (!value_.is_object()) expected("an object");
  std::vector<std::string> out;
  for (const auto& [key, member] : value_.items()) out.push_back(key);
  return out;
}

std::size_t JsonNode::size() const {
  if (!value_.is_array()) expected("an array");
  return value_.size();
}

std::size_t JsonNode::size_between(std::size_t least, std::size_t most) const {
  const std::size_t n = size();
  if (n < least || n > most)
    fault("expected an array of " + std::to_string(least) +
          (least == most ? "" : " to " + std::to_string(most)) + " members, found " +
          std::to_string(n));
  return n;
}

JsonNode JsonNode::at(std::size_t index) const {
  return JsonNode(value_[index], *this, {}, index);
}

bool JsonNode::is_null() const {
  return value_.is_null();
}

std::string JsonNode::text() const {
  if (!value_.is_string()) expected("a string");
  return value_.get<std::string>();
}

bool JsonNode::flag() const {
  if (!value_.is_boolean()) expected("true or false");
  return value_.get<bool>();
}

std::int64_t JsonNode::integer(std::int64_t least, std::int64_t most) const {
  if (!value_.is_number_integer()) expected("an integer");
  const bool huge = value_.is_number_unsigned() &&
                    value_.get<std::uint64_t>() >
                        static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  if (huge || value_.get<std::int64_t>() < least || value_.get<std::int64_t>() > most)
    fault(value_.dump() + " is not in [" + std::to_string(least) + ", " + std::to_string(most) +
          "]");
  return value_.get<std::int64_t>();
}

std::int32_t JsonNode::index() const {
  return static_cast<std::int32_t>(integer(0, std::numeric_limits<std::int32_t>::max()));
}

std::int64_t JsonNode::count() const {
  return integer(0, std::int64_t{1} << 53);
}

double JsonNode::finite() const {
  if (!value_.is_number()) expected("a number");
  const double value = value_.get<double>();
  if (!std::isfinite(value)) fault(value_.dump() + " is not a finite number");
  return value;
}

double JsonNode::non_negative() const {
  if (!value_.is_number()) expected("a number");
  const double value = value_.get<double>();
  if (!(value >= 0) || !std::isfinite(value))
    fault(value_.dump() + " is not a finite number of 0 or more");
  return value;
}

Status parse_json(std::string_view text, const JsonForm& form,
                  const std::function<void(const JsonNode&)>& read) {
  const std::string what = std::string(form.what) + ": ";
  try {
    const Bytes largest = limits::raised(form.largest);
    if (static_cast<double>(text.size()) > largest.in_base())
      fail("larger than the limit of " + format(largest) + "; " + limits::kRemedy);
    const SortedJson json = parse_strictly(text);
    const JsonNode root(json);
    if (!root.has("schema")) root.fields({"schema"}, {});
    if (const std::string schema = root["schema"].text(); schema != form.schema)
      fail("schema: " + in_quotes(schema) + " cannot be read; this version reads '" +
               std::string(form.schema) + "', which " + std::string(form.made_by) + " writes",
           Error::Code::kUnsupported);
    read(root);
    return {};
  } catch (const JsonFault& fault) {
    return Error{fault.error.code, what + fault.error.message};
  }
}

}  // namespace foreshard::program
