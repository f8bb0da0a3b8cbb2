#include "cli/declaration.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <CLI/StringTools.hpp>
#include <charconv>
#include <fmt/format.h>
#include <limits>
#include <utility>

#include "base/quantity.h"
#include "base/text.h"

namespace foreshard::cli {
namespace {

constexpr std::string_view kBetweenWords = "|";  // separator in the name of a choice's validator
constexpr const char* kOutput = "output";        // name of the validator of an output

// The parser's name of a positional argument, used in messages: "file is required".
std::string lower(const std::string& type) {
  std::string name;
  for (const char c : type.substr(0, type.find('.')))
    name += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return name;
}

}  // namespace

void Declaration::argument(const std::string& type, std::string& value, const std::string& doc) {
  app_->add_option(lower(type), value, doc)->type_name(type);
}

void Declaration::required_argument(const std::string& type, std::string& value,
                                    const std::string& doc) {
  app_->add_option(lower(type), value, doc)->type_name(type)->required();
}

void Declaration::arguments(const std::string& type, std::vector<std::string>& values,
                            const std::string& doc) {
  app_->add_option(lower(type), values, doc)->type_name(type)->required();
}
void Declaration::arguments_if_any(const std::string& type, std::vector<std::string>& values,
                                   const std::string& doc) {
  app_->add_option(lower(type), values, doc)->type_name(type);
}

void Declaration::option(const std::string& flags, const std::string& type, std::string& value,
                         const std::string& doc) {
  app_->add_option(flags, value, doc)->type_name(type);
}

void Declaration::output(const std::string& flags, const std::string& type, std::string& value,
                         const std::string& doc) {
  const auto any = [](const std::string&) { return std::string(); };
  app_->add_option(flags, value, doc)->type_name(type)->check(CLI::Validator(any, "", kOutput));
}

void Declaration::repeatable(const std::string& flags, const std::string& type,
                             std::vector<std::string>& values, const std::string& doc) {
  app_->add_option(flags, values, doc)->type_name(type)->allow_extra_args(false);
}

void Declaration::list(const std::string& flags, const std::string& type,
                       std::vector<std::string>& values, const std::string& doc) {
  app_->add_option(flags, values, doc)->type_name(type)->allow_extra_args();
}

void Declaration::choice(const std::string& flags, std::string& value,
                         std::vector<std::string> words, const std::string& doc) {
  value = words.front();
  const std::string all = fmt::format("{} One of: {}.", doc, join(words));
  const std::string name = join(words, kBetweenWords);
  const auto legal = [words = std::move(words)](const std::string& word) -> std::string {
    for (const std::string& candidate : words) {
      if (word == candidate) return {};
    }
    if (const auto near = nearest_name(word, words))
      return fmt::format("there is no '{}': did you mean '{}'?", word, *near);
    return fmt::format("there is no '{}': use {}", word, quoted_choice(words));
  };
  app_->add_option(flags, value, all)
      ->type_name("WORD")
      ->capture_default_str()
      ->check(CLI::Validator(legal, "", name));
}

void Declaration::count(const std::string& flags, std::int64_t& value, std::int64_t lowest,
                        const std::string& doc) {
  constexpr std::int64_t kHighest = std::numeric_limits<std::int32_t>::max();
  CLI::Option* option = app_->add_option(flags, value, doc);
  // The error message names the range; in the help it would be noise.
  option->type_name("N")->check(CLI::Range(lowest, kHighest).description(""));
  if (value >= lowest) option->capture_default_str();
}

void Declaration::flag(const std::string& flags, bool& value, const std::string& doc) {
  app_->add_flag(flags, value, doc);
}

std::vector<std::string> Declaration::given() const {
  std::vector<std::string> names;
  for (const CLI::Option* option :
       app_->get_options([](const CLI::Option* one) { return one->count() > 0; }))
    names.push_back(option->get_name());
  return names;
}

Declaration Declaration::subcommand(const std::string& name, bool& chosen, const std::string& doc,
                                    std::string_view example) {
  CLI::App* sub = app_->add_subcommand(name, doc);
  sub->fallthrough();
  sub->footer(example_footer(example));
  sub->callback([&chosen] { chosen = true; });
  return Declaration(*sub);
}

void Declaration::require_subcommand() {
  app_->require_subcommand(1);
}

namespace {

// Empty where the option has no validator, or one without a name.
std::string name_of_validator(CLI::Option& option) {
  try {
    return option.get_validator(0)->get_name();
  } catch (const CLI::OptionNotFound&) {
    return {};
  }
}

}  // namespace

std::vector<std::string> words_of(CLI::Option& option) {
  const std::string name = name_of_validator(option);
  return name.empty() || name == kOutput ? std::vector<std::string>{}
                                         : CLI::detail::split(name, kBetweenWords.front());
}

std::vector<NamedOutput> outputs_of(CLI::App& app) {
  std::vector<NamedOutput> outputs;
  for (CLI::Option* option : app.get_options([](CLI::Option* one) { return one->count() > 0; }))
    if (name_of_validator(*option) == kOutput)
      outputs.emplace_back(option->get_name(), option->results().back());
  for (CLI::App* sub : app.get_subcommands())
    for (NamedOutput& output : outputs_of(*sub)) outputs.push_back(std::move(output));
  return outputs;
}

std::string example_footer(std::string_view lines) {
  std::string text = "\nExample:\n  ";
  for (const char c : lines) {
    text += c;
    if (c == '\n') text += "  ";
  }
  return text;
}

Result<double> percentage(std::string text) {
  const std::string whole = text;
  if (text.ends_with('%')) text.pop_back();
  while (text.ends_with(' ')) text.pop_back();
  double value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status == std::errc() && end == text.data() + text.size() && value >= 0) return value;
  return Error{Error::Code::kInvalidInput,
               fmt::format("'{}' is not a percentage like '10%'", whole)};
}

Result<Seconds> parse_time_limit(const std::string& text) {
  const auto refuse = [](const std::string& why) {
    return Error{Error::Code::kInvalidInput, "--budget: " + why};
  };
  const bool is_number = !text.empty() && text.find_first_not_of("0123456789.") == text.npos;
  if (is_number)
    return refuse(fmt::format("'{0}' has no unit\n   help: write '{0}s' or '{0}min'", text));
  const auto time = parse<Seconds>(text);
  if (!time) return refuse(time.error().message);
  if (!(*time > Seconds{})) return refuse("must be positive\n   help: write for example '60s'");
  return *time;
}

}  // namespace foreshard::cli
