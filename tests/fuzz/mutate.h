/// \file
/// Mutations that keep the form of an input, so that a fuzzer passes the first checks of a reader.
/// Each function is what LLVMFuzzerCustomMutator of a fuzzer does; bytes that have not the form are
/// mutated as bytes. Without libFuzzer there is nothing here.
#pragma once

#ifdef FORESHARD_LIBFUZZER

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <utility>
#include <vector>

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace foreshard::fuzz {

inline std::size_t put(const std::string& text, std::uint8_t* data, std::size_t size,
                       std::size_t most) {
  if (text.size() > most) return LLVMFuzzerMutate(data, size, most);
  std::copy(text.begin(), text.end(), data);
  return text.size();
}

inline std::string mutated(std::string text, std::size_t most) {
  const std::size_t size = text.size();
  text.resize(std::max(size, most));
  text.resize(LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(text.data()), size, text.size()));
  return text;
}

/// Mutates one value of a JSON text: to one of another type or size, to a copy of another value, to
/// a deep one; or removes or repeats it.
class JsonMutation {
  using Json = nlohmann::ordered_json;

 public:
  explicit JsonMutation(unsigned seed) : draw_(seed) {}

  std::size_t operator()(std::uint8_t* data, std::size_t size, std::size_t most) {
    Json json = Json::parse(data, data + size, nullptr, false);
    if (json.is_discarded() || draw_() % 16 == 0) return LLVMFuzzerMutate(data, size, most);
    for (auto i = draw_() % 3 + 1; i > 0; --i) change(json);
    return put(json.dump(-1, ' ', false, Json::error_handler_t::replace), data, size, most);
  }

 private:
  static void collect(Json& json, std::vector<Json*>& all) {
    all.push_back(&json);
    if (!json.is_structured()) return;
    for (Json& one : json) collect(one, all);
  }

  Json other(const Json& json) {
    constexpr std::array<double, 8> kNumbers{0,     -1, 1, 0.5, 1e-30, 1e30, 9007199254740993.0,
                                             -1e308};
    switch (draw_() % 8) {
      case 0:
        return nullptr;
      case 1:
        return draw_() % 2 == 0;
      case 2:
        return kNumbers[draw_() % kNumbers.size()];
      case 3:
        return static_cast<std::int64_t>(draw_() % 5) - 1;
      case 4:
        return std::string(draw_() % 200, 'x');
      case 5:
        return Json::array({json, json});
      case 6: {
        Json deep = json;
        for (auto i = draw_() % 80; i > 0; --i) deep = Json::array({std::move(deep)});
        return deep;
      }
      default:
        return json.is_string() ? Json(mutated(json.get<std::string>(), 64)) : Json::object();
    }
  }

  void change(Json& json) {
    std::vector<Json*> all;
    collect(json, all);
    Json& one = *all[draw_() % all.size()];
    const Json copy = *all[draw_() % all.size()];
    if (one.is_structured() && !one.empty() && draw_() % 3 == 0) {
      const auto at = std::next(one.begin(), static_cast<std::ptrdiff_t>(draw_() % one.size()));
      if (one.is_array() && draw_() % 2 == 0)
        one.push_back(Json(*at));
      else
        one.erase(at);
    } else {
      one = draw_() % 3 == 0 ? copy : other(one);
    }
  }

  std::minstd_rand draw_;
};

}  // namespace foreshard::fuzz

#define FORESHARD_MUTATES_JSON                                                         \
  extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, \
                                                 std::size_t most, unsigned seed) {    \
    return foreshard::fuzz::JsonMutation(seed)(data, size, most);                      \
  }                                                                                    \
  static_assert(true)

#else
#define FORESHARD_MUTATES_JSON static_assert(true)
#endif
