#include "strategies/launch/internal/draft.h"

#include <charconv>
#include <utility>

namespace foreshard::launch::internal {

std::string Draft::word(std::string_view key, std::string_view otherwise) const {
  const auto found = values_.find(key);
  return found == values_.end() || found->second.words.empty() ? std::string(otherwise)
                                                               : found->second.words.front();
}

std::int64_t Draft::count(std::string_view key, std::int64_t otherwise) const {
  const std::string text = word(key);
  std::int64_t count = otherwise;
  std::from_chars(text.data(), text.data() + text.size(), count);
  return count;
}

void Draft::set_list(std::string_view key, const std::vector<std::int64_t>& counts,
                     std::string from) {
  Value value{.list = true, .from = std::move(from)};
  for (const std::int64_t count : counts) value.words.push_back(std::to_string(count));
  set(key, std::move(value));
}

void Draft::drop(std::string_view key) {
  if (const auto found = values_.find(key); found != values_.end()) values_.erase(found);
}

void Draft::forbid(std::string_view key, std::string why) {
  if (const auto found = values_.find(key); found != values_.end())
    found->second.forbidden = std::move(why);
}

}  // namespace foreshard::launch::internal
