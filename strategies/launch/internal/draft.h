/// \file
/// The content of a launch file in keys of ours, while it is read or written.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace foreshard::launch::internal {

struct Value {
  std::vector<std::string> words{};
  bool list = false;
  /// The setting it follows from: "--tensor-model-parallel-size 8". When a note is written: the key
  /// of ours that only this note expresses, if there is one.
  std::string from{};
  std::string place{};  ///< "file:line:column"
  /// When a value is written: why no file can express it together with the other values; empty: no
  /// reason is known.
  std::string forbidden{};
};

/// key -> value. Keys are keys of ours ("strategy.tensor_parallel", "model.layers") and notes
/// ("note.recompute_method"): settings that make a key of ours only together with others.
class Draft {
 public:
  bool has(std::string_view key) const { return values_.contains(key); }
  /// \pre has(key)
  const Value& at(std::string_view key) const { return values_.find(key)->second; }
  /// The only word of a value; `otherwise` if the key is not there.
  std::string word(std::string_view key, std::string_view otherwise = {}) const;
  std::int64_t count(std::string_view key, std::int64_t otherwise = 1) const;
  bool is(std::string_view key) const { return word(key) == "true"; }
  std::string from(std::string_view key) const { return has(key) ? at(key).from : std::string(); }
  std::string place(std::string_view key) const { return has(key) ? at(key).place : std::string(); }

  void set(std::string_view key, Value value) {
    values_.insert_or_assign(std::string(key), std::move(value));
  }
  void set(std::string_view key, std::string word, std::string from) {
    set(key, Value{.words = {std::move(word)}, .from = std::move(from)});
  }
  void set(std::string_view key, std::int64_t count, std::string from) {
    set(key, std::to_string(count), std::move(from));
  }
  void set_list(std::string_view key, const std::vector<std::int64_t>& counts, std::string from);
  void drop(std::string_view key);
  /// Keeps `key`, if it is there, from being written; `why` says why no file can express it.
  void forbid(std::string_view key, std::string why);

  const std::map<std::string, Value, std::less<>>& values() const { return values_; }

 private:
  std::map<std::string, Value, std::less<>> values_;
};

}  // namespace foreshard::launch::internal
