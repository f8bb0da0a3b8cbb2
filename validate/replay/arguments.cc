#include "validate/replay/arguments.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <limits>
#include <string_view>

#include "base/net/faults.h"
#include "base/quantity.h"
#include "base/text.h"

namespace foreshard::replay {
namespace {

using net::bad;

Error illegal(const std::string& name, const std::string& value, const std::string& legal) {
  return bad(name + " is '" + value + "', not " + legal);
}

template <class T>
std::optional<T> number_in(std::string_view text) {
  T value{};
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// One option; a flag if `value` is empty. `take` returns the fault of the value, or "".
struct Option {
  std::string_view name;
  std::string_view value;  // The value's name in --help.
  std::string_view help;
  std::function<std::string(Arguments&, const std::string&)> take;
};

std::string take_count(std::int64_t& out, const std::string& text, std::int64_t least) {
  const auto value = number_in<std::int64_t>(text);
  if (!value || *value < least || *value > 1'000'000)
    return "a whole number from " + std::to_string(least) + " to 1000000";
  out = *value;
  return "";
}

std::string take_seconds(Seconds& out, const std::string& text) {
  const auto plain = number_in<double>(text);
  const auto quantity = parse<Seconds>(text);
  if (!plain && !quantity) return "a time, such as 60 or 90 s";
  const Seconds value = plain ? Seconds::from_base(*plain) : *quantity;
  if (!(value >= 100_ms && value <= 24_h)) return "a time from 100 ms to 24 h";
  out = value;
  return "";
}

std::string take_share(std::optional<double>& out, const std::string& text) {
  const bool percent = text.ends_with('%');
  const auto value = number_in<double>(std::string_view(text).substr(0, text.size() - percent));
  const double share = value ? *value / (percent ? 100 : 1) : 0;
  if (!(share > 0 && share < 1)) return "a share between 0 and 1, such as 2% or 0.02";
  out = share;
  return "";
}

std::string take_hang(std::optional<Arguments::Hang>& out, const std::string& text) {
  const auto colon = text.find(':');
  if (colon == std::string::npos) return "RANK:INSTANCE, such as 2:17";
  const auto rank = number_in<std::int32_t>(std::string_view(text).substr(0, colon));
  const auto instance = number_in<std::int64_t>(std::string_view(text).substr(colon + 1));
  if (!rank || !instance || *rank < 0 || *instance < 0) return "RANK:INSTANCE, such as 2:17";
  out = Arguments::Hang{*rank, *instance};
  return "";
}

const std::vector<Option>& options() {
  using A = Arguments;
  using Text = const std::string&;
  static const std::vector<Option> all{
      {"--gpu", "", "on NVIDIA GPUs with NCCL (the default)",
       [](A& a, Text) { return a.host = false, ""; }},
      {"--host", "", "on processors, with BLAS and MPI",
       [](A& a, Text) { return a.host = true, ""; }},
      {"-o", "FILE", "measure, and write the measurement (JSON) there",
       [](A& a, Text text) { return a.output = text, ""; }},
      {"--verify", "", "check the numbers that each communication delivers",
       [](A& a, Text) { return a.verify = true, ""; }},
      {"--check", "", "check the Program and plan it, but run nothing",
       [](A& a, Text) { return a.check = true, ""; }},
      {"--warmup", "N", "number of steps before measurement begins (2)",
       [](A& a, Text text) { return take_count(a.warmup, text, 0); }},
      {"--repeats", "N", "least number of measured steps (10)",
       [](A& a, Text text) { return take_count(a.repeats, text, 1); }},
      {"--until", "P%",
       "measure more steps until the medians of step and large kernels are known to +-P %",
       [](A& a, Text text) { return take_share(a.until, text); }},
      {"--most-repeats", "N", "largest number of measured steps with --until (200)",
       [](A& a, Text text) { return take_count(a.most_repeats, text, 1); }},
      {"--for", "TIME", "go on measuring for this time, such as 90s, however many steps these are",
       [](A& a, Text text) { return take_seconds(a.lasting.emplace(), text); }},
      {"--watchdog", "SECONDS", "end a job in which nothing finishes for this time (60)",
       [](A& a, Text text) { return take_seconds(a.watchdog, text); }},
      {"--as-rank", "R", "replay rank R alone, in one process",
       [](A& a, Text text) -> std::string {
         const auto rank = number_in<std::int32_t>(text);
         if (!rank || *rank < 0) return "a rank of the Program";
         a.as_rank = *rank;
         return "";
       }},
      {"--arrivals", "FILE",
       "times at which what that rank receives arrives (foreshard export --arrivals)",
       [](A& a, Text text) { return a.arrivals = text, ""; }},
      {"--shared", "", "let several ranks share one GPU, to check correctness, not speed",
       [](A& a, Text) { return a.shared = true, ""; }},
      {"--rendezvous", "FOLDER",
       "let ranks find rank 0 by a file in this folder, which all of them see",
       [](A& a, Text text) { return a.rendezvous = text, ""; }},
      {"--hang", "RANK:INSTANCE", "stop that rank there (to test the watchdog)",
       [](A& a, Text text) { return take_hang(a.hang, text); }},
      {"--help", "", "print this", [](A& a, Text) { return a.help = true, ""; }},
      {"--version", "", "print the version", [](A& a, Text) { return a.version = true, ""; }},
  };
  return all;
}

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const Option& option : options()) all.emplace_back(option.name);
  return all;
}

const Option* find(std::string_view name) {
  if (name == "-h") name = "--help";
  if (name == "--output") name = "-o";
  const auto found = std::ranges::find(options(), name, &Option::name);
  return found == options().end() ? nullptr : &*found;
}

// Options that contradict each other, or are needed and missing.
Status contradiction_in(const Arguments& arguments) {
  if (arguments.program.empty())
    return bad("no Program is given: foreshard-replay PROGRAM.json -o MEASUREMENT.json");
  if (!arguments.check && !arguments.verify && arguments.output.empty())
    return bad("nothing to do: -o FILE measures, --verify checks numbers, --check only plans");
  if (arguments.until && arguments.most_repeats < arguments.repeats)
    return bad("--most-repeats is less than --repeats");
  if (arguments.as_rank.has_value() != !arguments.arrivals.empty())
    return bad("--as-rank and --arrivals belong together");
  if (arguments.as_rank && arguments.verify)
    return bad("--verify needs all ranks, and --as-rank replays one");
  if (arguments.shared && arguments.host)
    return bad("--shared applies to GPUs; ranks of --host share the host anyway");
  return {};
}

}  // namespace

Result<Arguments> arguments_from(const std::vector<std::string>& words) {
  Arguments arguments;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string& word = words[i];
    if (!word.starts_with('-') || word.size() == 1) {
      if (!arguments.program.empty())
        return bad("two Programs are given: '" + arguments.program + "' and '" + word + "'");
      arguments.program = word;
      continue;
    }
    const auto equals = word.starts_with("--") ? word.find('=') : std::string::npos;
    const std::string name = word.substr(0, equals);
    const Option* option = find(name);
    if (!option) {
      const auto near = nearest_name(name, names());
      return bad("there is no option '" + name + "'" +
                 (near ? "; did you mean '" + *near + "'?" : "") + " (see --help)");
    }
    std::string value;
    if (equals != std::string::npos) {
      if (option->value.empty()) return bad(name + " takes no value");
      value = word.substr(equals + 1);
    } else if (!option->value.empty()) {
      if (i + 1 == words.size()) return bad(name + " needs a value: " + std::string(option->value));
      value = words[++i];
    }
    if (!option->value.empty() && value.empty()) return bad(name + " is empty");
    const std::string legal = option->take(arguments, value);
    if (!legal.empty()) return illegal(name, value, legal);
  }
  if (arguments.help || arguments.version) return arguments;
  FORESHARD_TRY(contradiction_in(arguments));
  return arguments;
}

std::string help_text() {
  std::string text =
      "Replays a Program (foreshard export --program): this process carries out one rank of it.\n"
      "\n"
      "  foreshard-replay PROGRAM.json (-o FILE | --verify | --check) [OPTION...]\n"
      "\n"
      "  mpirun -n 4 foreshard-replay --host step.json --verify -o measured.json\n"
      "  srun -n 16 foreshard-replay step.json -o measured.json\n"
      "  torchrun --nproc-per-node 8 --no-python foreshard-replay step.json -o measured.json\n"
      "\n";
  for (const Option& option : options()) {
    std::string left = "  ";
    left += option.name;
    if (!option.value.empty()) {
      left += ' ';
      left += option.value;
    }
    left.resize(std::max<std::size_t>(left.size() + 1, 25), ' ');
    text += left;
    text += option.help;
    text += '\n';
  }
  text +=
      "\n"
      "Which rank it is: RANK, WORLD_SIZE and LOCAL_RANK, else OMPI_COMM_WORLD_*, FLUX_*, PALS_*,\n"
      "PMI_* with MPI_LOCALRANKID, SLURM_*.\n"
      "Where rank 0 is: MASTER_ADDR and MASTER_PORT; not needed under srun and on one host under\n"
      "mpirun, Flux and PALS. FORESHARD_TOKEN, the same for all ranks, keeps out those of other "
      "jobs\n"
      "that come to this place by mistake; launchers' names of jobs do the same.\n"
      "\n"
      "Exit: 0 done, 2 wrong input or no GPU, 3 out of memory, 4 wrong numbers (--verify),\n"
      "6 a rank hung or ended early, 130 interrupted.\n";
  return text;
}

}  // namespace foreshard::replay
