// Runs commands within the process (foreshard/foreshard.h, run) and reads what they say.
#include <charconv>
#include <exception>
#include <utility>

#include "base/caller.h"
#include "base/threads.h"
#include "cli/commands.h"
#include "cli/exit_code.h"
#include "foreshard_version.h"
#include "library/internal/asked.h"

namespace foreshard {
inline namespace v0 {
namespace {

// The number at the end of `text`, which is cut off with the ':' before it; 0 if there is none.
int take_number(std::string_view& text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos) return 0;
  int number = 0;
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data() + colon + 1, end, number);
  if (read.ec != std::errc() || read.ptr != end) return 0;
  text = text.substr(0, colon);
  return number;
}

// Reads the place and the remedy in "file:line:column: error: ...", "   help: ..."
// (base/yaml/internal/diagnostics.h).
Message message_of(const Caller::Message& said) {
  Message message{.is_error = said.is_error, .text = said.text, .remedy = said.help};
  if (!said.is_error) return message;
  const std::string_view text = message.text;
  constexpr std::string_view kError = ": error: ";
  if (const auto end = text.find(kError); end != std::string_view::npos) {
    std::string_view place = text.substr(0, end);
    if (const auto line = place.rfind('\n'); line != std::string_view::npos)
      place = place.substr(line + 1);
    const int last = take_number(place);
    const int before = last == 0 ? 0 : take_number(place);
    message.line = before == 0 ? last : before;
    message.column = before == 0 ? 0 : last;
    message.file = place;
  }
  constexpr std::string_view kHelp = " help: ";
  if (const auto begin = text.find(kHelp); begin != std::string_view::npos && said.help.empty()) {
    const auto from = begin + kHelp.size();
    message.remedy = text.substr(from, text.find('\n', from) - from);
  }
  if (!said.help.empty()) message.text += "\n   help: " + said.help;
  return message;
}

Failure::Kind kind_of(Error::Code code) {
  switch (code) {
    case Error::Code::kInvalidInput:
      return Failure::Kind::kInvalidInput;
    case Error::Code::kInfeasible:
      return Failure::Kind::kInfeasible;
    case Error::Code::kUnsupported:
      return Failure::Kind::kUnsupported;
    case Error::Code::kIo:
      return Failure::Kind::kIo;
  }
  return Failure::Kind::kInvalidInput;
}

std::function<Ending()> ending_of(const Hooks& hooks) {
  if (!hooks.stop) return {};
  return [&hooks] { return static_cast<Ending>(hooks.stop()); };
}

int code_of(Caller& caller, const Words& words, const cli::CatalogueFolder& catalogue) {
  const CalledBy called(&caller);
  try {
    return cli::run(words, catalogue);
  } catch (const CallEnded&) {
    caller.tell({.is_error = true, .code = {}, .text = "interrupted", .help = {}});
    return cli::kInterrupted;
  } catch (...) {
    const std::string_view missing = missing_resource(std::current_exception());
    if (missing.empty()) throw;
    caller.tell({.is_error = true, .code = {}, .text = std::string(missing), .help = {}});
    return cli::kBadInput;
  }
}

}  // namespace

namespace library {

Ran ran(const Words& words, const Hooks& hooks, const cli::CatalogueFolder& catalogue) {
  Caller caller{.input = hooks.input,
                .may_fork = hooks.may_fork,
                .stop = ending_of(hooks),
                .progress = hooks.progress};
  Ran ran;
  ran.answer.code = code_of(caller, words, catalogue);
  ran.answer.text = std::move(caller.output);
  for (const Caller::Message& said : caller.messages) {
    if (said.is_error) ran.fault = kind_of(said.code);
    ran.answer.messages.push_back(message_of(said));
  }
  return ran;
}

Answer asked(const Words& words, const Hooks& hooks, const cli::CatalogueFolder& catalogue) {
  Ran done = ran(words, hooks, catalogue);
  const int code = done.answer.code;
  if (code == cli::kInterrupted) throw Cancelled();
  if (code != cli::kInternalError && code != cli::kBadInput && !done.fault)
    return std::move(done.answer);
  std::string text;
  Message first;
  for (const Message& message : done.answer.messages) {
    if (!message.is_error) continue;
    if (text.empty()) first = message;
    text += (text.empty() ? "" : "\n") + message.text;
  }
  if (text.starts_with("--")) text.erase(0, 2);  // the field of a question has the option's name
  if (code == cli::kInternalError) throw InternalError(text);
  throw Failure(done.fault.value_or(Failure::Kind::kInvalidInput), text, std::move(first));
}

}  // namespace library

Answer run(const Words& words, const Hooks& hooks, const char* package) {
  return library::ran(words, hooks, {.last = package}).answer;
}

namespace {

Words joined(Words words, const Words& more) {
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

Words with_json(Words words, const Words& options) {
  return joined(joined(std::move(words), options), {"--format", "json"});
}

}  // namespace

Words words_of(const Study& study) {
  Words words;
  if (!study.file.empty()) words.push_back(study.file);
  for (const auto& [option, value] :
       {std::pair("--cluster", &study.cluster), std::pair("--model", &study.model),
        std::pair("--strategy", &study.strategy),
        std::pair("--communication", &study.communication)})
    if (!value->empty()) words = joined(std::move(words), {option, *value});
  for (const Setting& setting : study.settings)
    words = joined(std::move(words), {"--set", setting.key + "=" + setting.value});
  return words;
}

Answer sweep(const std::string& sweep, const Words& options, const Hooks& hooks,
             const char* package) {
  return library::asked(with_json({"study", sweep}, options), hooks, {.last = package});
}

Answer compare(const Study& study, const std::string& other, const Words& options,
               const Hooks& hooks, const char* package) {
  Words words = joined({"compare"}, words_of(study));
  if (!other.empty()) words.insert(words.begin() + (study.file.empty() ? 1 : 2), other);
  return library::asked(with_json(std::move(words), options), hooks,
                        library::catalogue_of(study, package));
}

Answer advise(const Study& study, const Words& options, const Hooks& hooks, const char* package) {
  return library::asked(with_json(joined({"advise"}, words_of(study)), options), hooks,
                        library::catalogue_of(study, package));
}

Answer explain(const std::string& found, const Words& options, const Hooks& hooks,
               const char* package) {
  return library::asked(with_json({"explain", found}, options), hooks, {.last = package});
}

Answer elastic(const std::string& timeline, const Words& options, const Hooks& hooks,
               const char* package) {
  return library::asked(with_json({"elastic", timeline}, options), hooks, {.last = package});
}

Answer replan(const Study& study, const Words& options, const Hooks& hooks, const char* package) {
  return library::asked(with_json(joined({"replan"}, words_of(study)), options), hooks,
                        library::catalogue_of(study, package));
}

Answer topology(const Words& options, const Hooks& hooks, const char* package) {
  const bool is_import = !options.empty() && options.front() == "import";  // which writes YAML
  return library::asked(
      is_import ? joined({"topology"}, options) : with_json({"topology"}, options), hooks,
      {.last = package});
}

Answer calibrate(const Words& options, const Hooks& hooks, const char* package) {
  return library::asked(joined({"calibrate"}, options), hooks, {.last = package});
}

Answer catalogue(const Words& options, const Hooks& hooks, const char* package) {
  const bool is_entry = !options.empty() && options.front() == "show";  // which is shown as YAML
  return library::asked(is_entry ? joined({"catalog"}, options) : with_json({"catalog"}, options),
                        hooks, {.last = package});
}

Answer check(const std::string& file, const Words& options, const Hooks& hooks,
             const char* package) {
  return library::asked(joined({"check", file}, options), hooks, {.last = package});
}

Answer import_launch(const std::string& file, const Words& options, const Hooks& hooks,
                     const char* package) {
  return library::asked(joined({"import", file}, options), hooks, {.last = package});
}

Answer export_launch(const Study& study, const std::string& framework, const Words& options,
                     const Hooks& hooks, const char* package) {
  return library::asked(
      joined(joined(joined({"export"}, words_of(study)), {"--as", framework}), options), hooks,
      library::catalogue_of(study, package));
}

Answer schema(const std::string& kind, const char* package) {
  return library::asked({"schema", kind}, {}, {.last = package});
}

std::string version() {
  return std::string(version::kNumber);
}

}  // namespace v0
}  // namespace foreshard
