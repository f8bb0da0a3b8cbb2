#include "tests/base/yaml/written_keys.h"

#include <cctype>
#include <charconv>
#include <fmt/format.h>

#include "base/limits.h"
#include "base/yaml/internal/parse.h"
#include "tests/test.h"

namespace foreshard {
namespace {

using yaml::internal::Node;

void collect(const Node& node, const std::string& path, std::vector<WrittenKey>& keys) {
  const auto below = [&](const std::string& key) { return path.empty() ? key : path + "." + key; };
  if (node.shape == Node::Shape::kScalar) keys.push_back({path, node.text});
  for (std::size_t i = 0; i < node.items.size(); ++i)
    collect(node.items[i], below(std::to_string(i)), keys);
  for (const auto& entry : node.entries) collect(entry.value, below(entry.key), keys);
}

bool is_whole(std::string_view text) {
  return !text.empty() &&
         std::ranges::all_of(text, [](unsigned char c) { return std::isdigit(c); });
}

std::vector<std::string> other_numbers(double number, bool whole, const std::string& unit) {
  std::vector<std::string> values;
  for (const double factor : {0.83, 1.21, 0.37, 2.9, 0.1, 10.0})
    if (!whole) values.push_back(fmt::format("{}{}", number * factor, unit));
  if (!whole) return values;
  const auto n = static_cast<std::int64_t>(number);
  for (const std::int64_t other : {n + 1, n - 1, 2 * n, n / 2, 4 * n, n + 7, std::int64_t{1}})
    if (other != n && other >= 0) values.push_back(fmt::format("{}{}", other, unit));
  return values;
}

}  // namespace

std::vector<WrittenKey> written_keys(const std::string& text) {
  yaml::internal::Sources sources;
  yaml::internal::Diagnostics diagnostics;
  const int source = sources.add({.name = "file", .file = {}, .text = text, .is_override = false});
  const auto node = parse(sources, source, limits::kYamlValues, diagnostics);
  EXPECT_TRUE(node && diagnostics.empty());
  std::vector<WrittenKey> keys;
  if (node) collect(*node, "", keys);
  return keys;
}

std::string general(const std::string& path) {
  std::string result;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    const std::string part = path.substr(begin, end - begin);
    if (!is_whole(part)) result += (result.empty() ? "" : ".") + part;
    begin = end + 1;
  }
  return result;
}

std::vector<std::string> other_values(const WrittenKey& key, const WordPool& pool) {
  if (key.text == "true" || key.text == "false") return {key.text == "true" ? "false" : "true"};
  double number = 0;
  const char* const end = key.text.data() + key.text.size();
  const auto [rest, status] = std::from_chars(key.text.data(), end, number);
  const std::string unit(rest, end);
  if (status == std::errc() && (unit.empty() || unit.front() == ' ')) {
    // A quantity may be written without decimals and still be no count.
    auto values = other_numbers(number, is_whole(key.text), unit);
    if (number == 0) values = {"1" + unit, "0.5" + unit};
    return values;
  }
  std::vector<std::string> values;
  for (const std::string& where : {general(key.path), std::string()}) {
    const auto words = pool.find(where);
    if (words == pool.end()) continue;
    for (const std::string& word : words->second)
      if (word != key.text) values.push_back(word);
  }
  values.push_back(key.text + "x");
  return values;
}

}  // namespace foreshard
