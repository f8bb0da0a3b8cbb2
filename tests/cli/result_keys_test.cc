// No key of a result goes away: scripts read them. tests/golden/result_keys.txt has all that there
// were, and FORESHARD_UPDATE_GOLDENS=1 accepts those that there are now. A key that goes raises the
// version of its result's schema.
#include <nlohmann/json.hpp>

#include "cli/results.h"
#include "tests/test.h"

namespace foreshard::cli::result_keys_test {

using Json = nlohmann::ordered_json;
using Keys = std::map<std::string, std::set<std::string>>;  // place of an object -> its keys

// `within`: the definitions that the part stands in, as one may have itself.
void add_keys(const Json& part, const Json& schema, const std::string& place,
              std::set<std::string> within, Keys& keys) {
  if (part.is_array())
    for (const Json& one : part) add_keys(one, schema, place, within, keys);
  if (!part.is_object()) return;
  if (part.contains("$ref")) {
    const auto name = part["$ref"].get<std::string>().substr(std::string("#/definitions/").size());
    if (within.insert(name).second)
      add_keys(schema["definitions"][name], schema, place, within, keys);
  }
  for (const auto& [word, value] : part.items()) {
    if (word == "definitions" || word == "required" || word == "enum") continue;
    if (word != "properties") add_keys(value, schema, place, within, keys);
    if (word != "properties") continue;
    for (const auto& [key, inner] : value.items()) {
      keys[place].insert(key);
      add_keys(inner, schema, place + "/" + key, within, keys);
    }
  }
}

TEST(ResultKeys, DoNotGoAway) {
  Keys keys;
  for (const std::string& name : result_names()) {
    const Json schema = value_of(result_schema(name));
    add_keys(schema, schema, schema["title"].get<std::string>(), {}, keys);
  }
  const std::string path = FORESHARD_SOURCE_DIR "/tests/golden/result_keys.txt";
  if (std::getenv("FORESHARD_UPDATE_GOLDENS") != nullptr) {
    std::ofstream file(path);
    for (const auto& [place, words] : keys) {
      file << place;
      for (const std::string& word : words) file << ' ' << word;
      file << '\n';
    }
  }
  std::ifstream file(path);
  ASSERT_TRUE(file) << path;
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string place;
    words >> place;
    for (std::string word; words >> word;)
      EXPECT_TRUE(keys[place].contains(word)) << place << " has no '" << word << "' any more";
  }
}

}  // namespace foreshard::cli::result_keys_test
