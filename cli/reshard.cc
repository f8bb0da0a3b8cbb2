#include "cli/reshard.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/text.h"
#include "cli/commands.h"
#include "cli/load.h"
#include "cli/options.h"
#include "cli/output.h"

namespace foreshard::cli {
namespace {

// "3,8-15" -> 3, 8, 9, ..., 15; ascending, each once.
Result<std::vector<std::int32_t>> numbers_in(const std::string& text) {
  constexpr std::int32_t kMost = 1 << 22;
  const Error error{Error::Code::kInvalidInput,
                    "--down " + text + ": write numbers and ranges, such as 3,8-15"};
  std::set<std::int32_t> numbers;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    std::int32_t first = 0;
    auto read = std::from_chars(at, end, first);
    std::int32_t last = first;
    if (read.ec == std::errc{} && read.ptr < end && *read.ptr == '-')
      read = std::from_chars(read.ptr + 1, end, last);
    if (read.ec != std::errc{} || first < 0 || last < first || last > kMost) return error;
    for (std::int32_t i = first; i <= last; ++i) numbers.insert(i);
    at = read.ptr;
    if (at == end) break;
    if (*at++ != ',' || at == end) return error;
  }
  return std::vector<std::int32_t>(numbers.begin(), numbers.end());
}

class Reshard final : public Command {
 public:
  Reshard() {
    modes_.push_back(make_reshard_tensor());
    modes_.push_back(make_reshard_strategy());
    modes_.push_back(make_reshard_checkpoint());
  }

  void declare(Declaration& declaration) override {
    declaration_ = declaration;
    declaration.option("--from", "LAYOUT", options_.from,
                       "Layout before: mesh axes, ranks, and what splits each dimension; for "
                       "example \"tp=8 @0-7 [-, tp]\".");
    declaration.option("--to", "LAYOUT", options_.to, "Layout after, in the same form.");
    declaration.option(
        "--cluster", "FILE", options_.cluster,
        "Cluster: a file, a catalogue name, or YAML in braces. Rank r is on device r.");
    declaration.option("--to-strategy", "FILE", options_.to_strategy,
                       "Strategy after: a file, a catalogue name, or YAML in braces.");
    declaration.option(
        "--model", "FILE", options_.model,
        "With strategies, the model: a file, a catalogue name, YAML in braces, or a config.json of "
        "Hugging Face.");
    declaration.option("--down", "RANKS", down_,
                       "Devices (of a checkpoint: ranks) that are lost, such as 3,8-15; what they "
                       "held is taken from replicas.");
    for (const auto& mode : modes_) mode->declare(declaration);
    add_set(declaration, options_.sets);
    add_format(declaration, options_.format, {"text", "json", "csv"});
    add_output(declaration, options_.output);
  }

  Result<ExitCode> run(const Environment& environment) override {
    const auto asked =
        std::ranges::count_if(modes_, [](const auto& mode) { return mode->asked(); });
    if (asked != 1)
      return fail(
          asked == 0 ? "nothing to reshard is given" : "more than one thing to reshard is given",
          "give a tensor, for example --tensor \"bf16[8192,8192]\", or --from-strategy, or "
          "--checkpoint");
    ReshardMode& mode =
        **std::ranges::find_if(modes_, [](const auto& one) { return one->asked(); });
    for (const std::string& option : declaration_->given())
      if (const auto code = misplaced(option, mode)) return *code;
    for (const std::string& set : options_.sets)
      if (const auto code = unreachable(set, mode.settable(options_))) return *code;
    if (!down_.empty()) {
      FORESHARD_ASSIGN(options_.down, numbers_in(down_));
    }
    options_.cluster = as_cluster(options_.cluster, environment.catalogue);
    return mode.run(options_, environment);
  }

 private:
  static bool has(const std::vector<std::string>& list, const std::string& word) {
    return std::ranges::find(list, word) != list.end();
  }

  // The error if the option belongs to another mode.
  std::optional<ExitCode> misplaced(const std::string& option, const ReshardMode& mode) const {
    const std::vector<std::string> common{"--set", "--format", "--output"};
    const auto used = mode.options();
    if (has(common, option) || has(used, option)) return std::nullopt;
    std::vector<std::string> others;
    for (const auto& other : modes_)
      if (has(other->options(), option)) others.push_back(other->options().front());
    return fail(fmt::format("{} does not apply with {}", option, used.front()),
                fmt::format("it applies with {}", quoted_choice(others)));
  }

  // The error if a `--set` path begins with none of `parts`.
  static std::optional<ExitCode> unreachable(const std::string& set,
                                             const std::vector<std::string>& parts) {
    if (has(parts, set.substr(0, set.find_first_of(".=")))) return std::nullopt;
    return fail("--set " + set + ": there is no such value to set",
                parts.empty() ? "without --model there are no settings"
                              : "begin with " + quoted_choice(parts) + ", as in " + parts.front() +
                                    ".name=other");
  }

  std::optional<Declaration> declaration_;
  ReshardOptions options_;
  std::string down_;
  std::vector<std::unique_ptr<ReshardMode>> modes_;
};

}  // namespace

std::unique_ptr<Command> make_reshard() {
  return std::make_unique<Reshard>();
}

}  // namespace foreshard::cli
