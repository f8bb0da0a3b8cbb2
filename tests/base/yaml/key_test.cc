#include "base/yaml/key.h"

#include <functional>
#include <gmock/gmock.h>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace foreshard::yaml::key_test {
namespace {

struct Part {
  std::int64_t size = 0;
};
const Table<Part>& yaml_table(const Part*) {
  static const auto table = Table<Part>("part", "A part.").optional("size", &Part::size, "Size.");
  return table;
}

struct Whole {
  bool is_on = false;
  double share = 0;
  std::string name;
  std::optional<double> limit;
  std::vector<std::string> words;
  std::map<std::string, std::int64_t> counts;
  std::vector<Part> parts;
  std::int64_t ignored = 0;
};
const Table<Whole>& yaml_table(const Whole*) {
  static const auto table = Table<Whole>("whole", "All.")
                                .optional("on", &Whole::is_on, "On.")
                                .optional("share", &Whole::share, "Share.")
                                .optional("name", &Whole::name, "Name.")
                                .optional("limit", &Whole::limit, "Limit.")
                                .optional("words", &Whole::words, "Words.")
                                .optional("counts", &Whole::counts, "Counts.")
                                .optional("parts", &Whole::parts, "Parts.")
                                .optional("ignored", &Whole::ignored, "Left out.");
  return table;
}

std::vector<std::int64_t> numbers_of(const Whole& whole) {
  static constexpr std::string_view kWithout[] = {"ignored"};
  static const Key<Whole> key(kWithout);
  std::vector<std::int64_t> numbers;
  key.append(whole, numbers);
  return numbers;
}

TEST(Key, DiffersIfAFieldDoes) {
  const std::vector<std::function<void(Whole&)>> changes{
      [](Whole&) {},
      [](Whole& w) { w.is_on = true; },
      [](Whole& w) { w.share = -0.5; },
      [](Whole& w) { w.name = "a"; },
      [](Whole& w) { w.name = std::string(1, '\0'); },
      [](Whole& w) { w.name = "longer than eight"; },
      [](Whole& w) { w.limit = 0; },
      [](Whole& w) {
        w.words = {"a", "b"};
      },
      [](Whole& w) { w.words = {"ab"}; },
      [](Whole& w) {
        w.words = {"", "ab"};
      },
      [](Whole& w) {
        w.counts = {{"a", 1}};
      },
      [](Whole& w) {
        w.counts = {{"b", 1}};
      },
      [](Whole& w) { w.parts = {{.size = 1}}; },
      [](Whole& w) {
        w.parts = {{.size = 1}, {.size = 0}};
      },
  };
  for (std::size_t i = 0; i < changes.size(); ++i)
    for (std::size_t j = 0; j < changes.size(); ++j) {
      Whole a, b;
      changes[i](a);
      changes[j](b);
      EXPECT_EQ(numbers_of(a) == numbers_of(b), i == j) << i << " and " << j;
    }
}

TEST(Key, IsTheSameWhateverAFieldThatIsLeftOut) {
  Whole other;
  other.ignored = 1;
  EXPECT_EQ(numbers_of(Whole()), numbers_of(other));
}

}  // namespace
}  // namespace foreshard::yaml::key_test
