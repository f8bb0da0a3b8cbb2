#include "validate/calibrate/nccl_tests.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <fmt/format.h>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "base/json.h"
#include "base/text.h"

#include "validate/calibrate/internal/nccl_tests_json.h"

namespace foreshard::calibrate::internal {
namespace {

// Strips the prefixes that launchers put in front of each line of a program's output:
//
//     [1,0]<stdout>:# nThread 1 ...         mpirun --tag-output
//     0: # nThread 1 ...                    srun -l
//     [0] # nThread 1 ...                   mpiexec -l (Intel MPI, Hydra)
//     [default0]:# nThread 1 ...            torchrun
//     Nov 28 21:33:25 # nThread 1 ...       ts, and other dates and times of day
//     node-a: # nThread 1 ...               pdsh, clush: any text that stood before a "#" once
//
// Source: manual pages of Open MPI's mpirun, SLURM's srun, Intel MPI's mpiexec and moreutils' ts.

class LogLines {
 public:
  /// The line as the program wrote it; empty for a line that a launcher tags as stderr.
  std::string_view plain(std::string_view line);

 private:
  std::set<std::string, std::less<>> seen_;  ///< Prefixes seen before a "#".
};

constexpr std::size_t kLongestTag = 64;
constexpr std::string_view kStderr = "<stderr>:";

bool is_digit(char c) {
  return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

// Length of `pattern` if the text begins with it, else 0; "d" in the pattern stands for a digit.
std::size_t like(std::string_view text, std::string_view pattern) {
  if (text.size() < pattern.size()) return 0;
  for (std::size_t i = 0; i < pattern.size(); ++i)
    if (pattern[i] == 'd' ? !is_digit(text[i]) : text[i] != pattern[i]) return 0;
  return pattern.size();
}

std::size_t blanks(std::string_view text) {
  return std::min(text.find_first_not_of(" \t"), text.size());
}
std::size_t digits(std::string_view text) {
  return static_cast<std::size_t>(
      std::distance(text.begin(), std::ranges::find_if_not(text, is_digit)));
}

// "21:33:25", optionally with a fraction of a second and a time zone.
std::size_t time_of_day(std::string_view text) {
  std::size_t end = like(text, "dd:dd:dd");
  if (end == 0) return 0;
  if (end < text.size() && (text[end] == '.' || text[end] == ','))
    end += 1 + digits(text.substr(end + 1));
  if (end < text.size() && text[end] == 'Z') return end + 1;
  for (const std::string_view zone : {"+dd:dd", "-dd:dd", "+dddd", "-dddd"})
    if (const std::size_t length = like(text.substr(end), zone)) return end + length;
  return end;
}

// "2026-11-28T21:33:25", "2026/11/28 21:33:25".
std::size_t date_and_time(std::string_view text) {
  std::size_t end = std::max(like(text, "dddd-dd-dd"), like(text, "dddd/dd/dd"));
  if (end == 0 || end >= text.size()) return 0;
  const std::size_t time = time_of_day(text.substr(end + 1));
  return time == 0 ? 0 : end + 1 + time;
}

// "Nov 28 21:33:25", "Sat Nov 28 21:33:25 2026".
std::size_t month_and_time(std::string_view text) {
  constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
  constexpr std::string_view kDays = "MonTueWedThuFriSatSun";
  const auto is_one_of = [&](std::size_t at, std::string_view names) {
    const std::string_view word = text.substr(std::min(at, text.size()), 3);
    const std::size_t found = word.size() == 3 ? names.find(word) : std::string_view::npos;
    return found != std::string_view::npos && found % 3 == 0;
  };
  const bool has_day = is_one_of(0, kDays);
  std::size_t at = has_day ? 4 : 0;
  if (!is_one_of(at, kMonths)) return 0;
  at += 3;
  at += blanks(text.substr(std::min(at, text.size())));
  const std::size_t day = digits(text.substr(std::min(at, text.size())));
  if (day == 0 || day > 2) return 0;
  at += day;
  at += blanks(text.substr(at));
  const std::size_t time = time_of_day(text.substr(at));
  if (time == 0) return 0;
  at += time;
  return has_day ? at + like(text.substr(at), " dddd") : at;
}

// Seconds since 1970, with a fraction.
std::size_t epoch(std::string_view text) {
  const std::size_t whole = like(text, "dddddddddd.");
  return whole == 0 ? 0 : whole + digits(text.substr(whole));
}

// "[...]", optionally followed by a colon.
std::size_t in_brackets(std::string_view text) {
  if (!text.starts_with('[')) return 0;
  const std::size_t end = text.find(']');
  if (end == std::string_view::npos || end > kLongestTag) return 0;
  return end + 1 < text.size() && text[end + 1] == ':' ? end + 2 : end + 1;
}

// "12: "
std::size_t task(std::string_view text) {
  const std::size_t end = digits(text);
  const bool is = end > 0 && end < text.size() && text[end] == ':' &&
                  (end + 1 == text.size() || text[end + 1] == ' ');
  return is ? end + 1 : 0;
}

std::size_t stream(std::string_view text) {
  for (const std::string_view name : {std::string_view("<stdout>:"), kStderr,
                                      std::string_view("stdout F "), std::string_view("stderr F ")})
    if (text.starts_with(name)) return name.size();
  return 0;
}

constexpr std::array kPrefixes{time_of_day, date_and_time, month_and_time, epoch,
                               in_brackets, task,          stream};

std::string_view LogLines::plain(std::string_view line) {
  for (bool found = true; found;) {
    found = false;
    const std::string_view text = line.substr(blanks(line));
    for (const auto prefix : kPrefixes) {
      const std::size_t length = prefix(text);
      if (length == 0) continue;
      if (text.substr(0, length) == kStderr) return {};
      line = text.substr(length);
      found = true;
      break;
    }
  }
  const std::size_t mark = line.find('#');
  if (mark != std::string_view::npos && mark > 0 && mark <= kLongestTag) {
    const std::string_view before = line.substr(0, mark);
    const std::string_view word = before.substr(0, before.find_last_not_of(" \t") + 1);
    const bool is_tag = (word.ends_with(':') || word.ends_with('|') || word.ends_with('>')) &&
                        word.find_first_of(" \t") >= word.find_last_not_of(":|> \t");
    if (is_tag) seen_.emplace(word);
  }
  for (const std::string& tag : seen_)
    if (line.starts_with(tag)) return line.substr(tag.size());
  return line;
}

}  // namespace
}  // namespace foreshard::calibrate::internal

namespace foreshard::calibrate {
namespace {

// A word of a line and where it begins (columns count from 1).
struct Word {
  std::string_view text;
  std::size_t column = 1;
};

std::vector<Word> words_of(std::string_view line) {
  constexpr std::string_view kBlank = " \t\r";
  std::vector<Word> words;
  std::size_t begin = line.find_first_not_of(kBlank);
  while (begin != std::string_view::npos) {
    const std::size_t end = std::min(line.find_first_of(kBlank, begin), line.size());
    words.push_back({line.substr(begin, end - begin), begin + 1});
    begin = line.find_first_not_of(kBlank, end);
  }
  return words;
}

template <class T>
std::optional<T> number_in(std::string_view text) {
  T value{};
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// Index of each column in a row, from the words of the header.
struct Columns {
  std::size_t count = 0;
  std::optional<std::size_t> size, dtype, reduction;
  std::array<std::optional<std::size_t>, 2> time{};  // out of place, in place
  std::array<std::optional<std::size_t>, 2> wrong{};
  bool cpu = false;
};

Columns columns_of(const std::vector<Word>& words) {
  Columns columns;
  for (const Word& word : words) {
    if (word.text == "#") continue;
    const std::size_t at = columns.count++;
    if (word.text == "size") columns.size = at;
    if (word.text == "type") columns.dtype = at;
    if (word.text == "redop") columns.reduction = at;
    if (word.text == "time" || word.text == "cputime") {
      columns.cpu = columns.cpu || word.text == "cputime";
      (columns.time[0] ? columns.time[1] : columns.time[0]) = at;
    }
    if (word.text == "#wrong" || word.text == "error")
      (columns.wrong[0] ? columns.wrong[1] : columns.wrong[0]) = at;
    if (word.text == "timestamp") --columns.count;  // the last one: a date and a time
  }
  return columns;
}

bool is_header(const std::vector<Word>& words) {
  return words.size() > 4 && words[0].text == "#" && words[1].text == "size" &&
         words[2].text == "count";
}

// Lines of NCCL itself among the rows: "node-a:123:456 [0] NCCL INFO ...", "NCCL version 2.28.9".
bool is_log(std::string_view line) {
  return line.find(" NCCL ") != std::string_view::npos || line.starts_with("NCCL version");
}

class Reader {
 public:
  Reader(std::string_view text, std::string_view name, std::string_view told)
      : text_(text), name_(name), told_(told) {}

  Result<NcclTestsRun> run() {
    for (std::size_t begin = 0; begin < text_.size();) {
      const std::size_t end = std::min(text_.find('\n', begin), text_.size());
      ++line_;
      FORESHARD_TRY(read(lines_.plain(text_.substr(begin, end - begin))));
      begin = end + 1;
    }
    if (!columns_)
      return Error{
          Error::Code::kInvalidInput,
          fmt::format("{}: no table: the header '# size count type ...' is missing", name_)};
    if (run_.ranks.empty())
      return Error{Error::Code::kInvalidInput,
                   fmt::format("{}: no rank is listed ('# Rank 0 ... on HOST device 0 ...'), so "
                               "the number of ranks is unknown",
                               name_)};
    if (run_.rows.empty())
      return Error{Error::Code::kInvalidInput, fmt::format("{}: the table has no row", name_)};
    return std::move(run_);
  }

 private:
  Error fault(std::size_t column, const std::string& why,
              Error::Code code = Error::Code::kInvalidInput) const {
    return {code, fmt::format("{}:{}:{}: {}", name_, line_, column, why)};
  }

  Status read(std::string_view line) {
    const auto words = words_of(line);
    if (words.empty()) return {};
    if (done_) return after_end(line, words);
    if (words[0].text.starts_with('#')) return comment(line, words);
    if (!columns_) return before(line, words);
    if (is_log(line)) return {};
    return row(words);
  }

  // A line before the test's own output, from a launcher. Only NCCL's version, the program's name
  // and lines "# Rank" that lost their "#" are of interest.
  Status before(std::string_view line, std::vector<Word> words) {
    if (words.size() > 2 && words[0].text == "Rank") {
      words.insert(words.begin(), Word{"#", 1});
      return rank(line, words);
    }
    program_in(words);
    if (words.size() >= 3 && words[0].text == "NCCL" && words[1].text == "version")
      run_.nccl_version = std::string(words[2].text.substr(0, words[2].text.find('+')));
    return {};
  }

  // The last program before the table, unless the test itself named it.
  void program_in(const std::vector<Word>& words) {
    if (named_) return;
    for (const Word& word : words) {
      const std::string_view program = word.text.substr(word.text.rfind('/') + 1);
      if (program.find("_perf") == std::string_view::npos) continue;
      if (std::string found = internal::operation_in(program); !found.empty())
        run_.operation = std::move(found);
    }
  }

  // A line after the table. Launchers may add some, but a second run is an error: it would be lost.
  Status after_end(std::string_view line, const std::vector<Word>& words) const {
    if (is_header(words) || line.starts_with("# nThread ") ||
        line.starts_with("# Collective test starting:"))
      return fault(words[0].column, "another run begins here; give each run a file of its own",
                   Error::Code::kUnsupported);
    return {};
  }

  Status comment(std::string_view line, const std::vector<Word>& words) {
    const auto after = [&](std::string_view key) -> std::optional<std::string_view> {
      const auto at = line.find(key);
      if (at == std::string_view::npos) return {};
      return line.substr(at + key.size());
    };
    if (const auto program = after("Collective test starting:")) {
      const auto named = words_of(*program);
      if (!named.empty()) run_.operation = internal::operation_in(named[0].text);
      named_ = true;
      if (!named.empty() && run_.operation.empty())
        return fault(
            named[0].column,
            fmt::format("{} is not modelled: {} are", named[0].text, join(nccl_tests_operations())),
            Error::Code::kUnsupported);
    } else if (!columns_) {
      program_in(words);
    }
    if (const auto version = after("nccl-library=")) {
      const auto code = number_in<std::int64_t>(version->substr(0, version->find(' ')));
      if (code) run_.nccl_version = internal::version_of(*code);
    }
    if (after("Out of bounds values") || after("Avg bus bandwidth")) {
      done_ = columns_.has_value();
      return {};
    }
    if (words.size() > 2 && words[1].text == "Rank") return rank(line, words);
    if (is_header(words)) return header(words);
    return {};
  }

  Status rank(std::string_view line, const std::vector<Word>& words) {
    const auto place = std::ranges::find(words, "on", &Word::text);
    const auto number = number_in<std::int64_t>(words[2].text);
    if (!number) return fault(words[2].column, "the rank is not a number");
    if (std::distance(place, words.end()) < 5 || (place + 2)->text != "device")
      return fault(words[1].column, "a line of a rank: 'Rank N ... on HOST device D [ID] NAME'");
    const auto group = std::ranges::find(words, "Group", &Word::text);
    if (group != words.end() && std::next(group) == words.end())
      return fault(group->column, "a number must follow 'Group'");
    if (group != words.end() && std::next(group)->text != "0")
      return fault(group->column,
                   "several groups ran at the same time (NCCL_TESTS_SPLIT): their times are not "
                   "those of one",
                   Error::Code::kUnsupported);
    const auto device = line.find("] ");
    std::string_view name =
        device == std::string_view::npos ? std::string_view() : line.substr(device + 2);
    while (!name.empty() && (name.back() == ' ' || name.back() == '\r')) name.remove_suffix(1);
    for (const NcclTestsRank& known : run_.ranks)
      if (known.rank == *number)
        return fault(words[2].column,
                     fmt::format("rank {} is listed twice: several runs in one file, or processes "
                                 "that did not join (built without MPI)",
                                 *number));
    run_.ranks.push_back(
        {.rank = *number, .host = std::string((place + 1)->text), .device = std::string(name)});
    return {};
  }

  Status header(const std::vector<Word>& words) {
    const Columns columns = columns_of(words);
    if (!columns.size || !columns.dtype || !columns.time[0])
      return fault(words[0].column, "the header has no size, type or time");
    if (columns.cpu)
      return fault(words[0].column, "times of the CPU (-C) are not those of the operation",
                   Error::Code::kUnsupported);
    FORESHARD_TRY(missing_ranks(words));
    if (const auto why = internal::fault_in_operation(
            told_, std::filesystem::path(name_).filename().string(), run_.operation))
      return fault(words[0].column, *why);
    columns_ = columns;
    return {};
  }

  // Excerpts often keep only the last rank; the other ranks' hosts and devices are then unknown.
  Status missing_ranks(const std::vector<Word>& words) const {
    std::int64_t highest = -1;
    for (const NcclTestsRank& rank : run_.ranks) highest = std::max(highest, rank.rank);
    if (highest < std::ssize(run_.ranks)) return {};
    return fault(words[0].column,
                 fmt::format("of {} ranks only {} {} listed: the line '# Rank N ... on HOST device "
                             "D ...' of each of them is needed",
                             static_cast<double>(highest) + 1, run_.ranks.size(),
                             run_.ranks.size() == 1 ? "is" : "are"));
  }

  Status row(std::vector<Word> words) {
    const Columns& columns = *columns_;
    // Old versions leave the cell of the reduction empty if the operation does not reduce.
    if (columns.reduction && words.size() + 1 == columns.count &&
        (*columns.reduction == words.size() || number_in<double>(words[*columns.reduction].text)))
      words.insert(words.begin() + static_cast<std::ptrdiff_t>(*columns.reduction), Word{});
    if (words.size() < columns.count)
      return fault(words.back().column,
                   fmt::format("{} cells, where the header has {}", words.size(), columns.count));
    const auto size = number_in<double>(words[*columns.size].text);
    if (!size || !(*size >= 0) || *size != std::floor(*size))
      return fault(words[*columns.size].column,
                   fmt::format("'{}' is not a number of bytes", words[*columns.size].text));
    NcclTestsRow result{.line = line_,
                        .size = Bytes::from_base(*size),
                        .dtype = std::string(words[*columns.dtype].text),
                        .reduction = {},
                        .out_of_place = {},
                        .in_place = {}};
    if (columns.reduction) result.reduction = std::string(words[*columns.reduction].text);
    for (const std::size_t way : {0U, 1U}) {
      if (!columns.time[way]) continue;
      const Word& cell = words[*columns.time[way]];
      const auto time = number_in<double>(cell.text);
      if (!time || !(*time >= 0) || !std::isfinite(*time))
        return fault(cell.column, fmt::format("'{}' is not a time in us", cell.text));
      NcclTestsTime one{.time = *time * 1_us, .wrong = {}};
      if (columns.wrong[way]) {
        const Word& wrong = words[*columns.wrong[way]];
        const auto count = number_in<double>(wrong.text);
        if (!count && wrong.text != "N/A")
          return fault(wrong.column, fmt::format("'{}' is not a number of errors", wrong.text));
        // Before 2.13 the column held the largest deviation, which rounding explains.
        if (count && *count >= 1)
          return fault(wrong.column,
                       fmt::format("{} wrong elements: its times do not count", wrong.text),
                       Error::Code::kUnsupported);
        if (count) one.wrong = 0;
      }
      (way == 0 ? result.out_of_place : result.in_place) = one;
    }
    run_.rows.push_back(std::move(result));
    return {};
  }

  std::string_view text_;
  std::string_view name_;
  std::string_view told_;
  internal::LogLines lines_;
  std::size_t line_ = 0;
  bool done_ = false;
  bool named_ = false;  // by the test itself
  std::optional<Columns> columns_;
  NcclTestsRun run_;
};

}  // namespace

std::int64_t NcclTestsRun::nodes() const {
  std::set<std::string> hosts;
  for (const NcclTestsRank& rank : ranks) hosts.insert(rank.host);
  return std::ssize(hosts);
}

bool is_nccl_tests(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return false;
  if (text[first] == '{') {
    const auto keys = first_object_keys(text);
    const auto has = [&](std::string_view key) {
      return std::ranges::find(keys, key) != keys.end();
    };
    return (has("results") || has("config")) && !has("traceEvents");
  }
  constexpr std::size_t kMostBytes =
      std::size_t{16} << 20;  // searched for the test's first lines, after launchers' output
  text = text.substr(0, kMostBytes);
  internal::LogLines lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    auto words = words_of(lines.plain(text.substr(begin, end - begin)));
    begin = end + 1;
    if (is_header(words)) return true;
    if (!words.empty() && words[0].text == "#") words.erase(words.begin());
    const auto is = [&](std::size_t at, std::string_view word) {
      return at < words.size() && words[at].text == word;
    };
    if (is(0, "nThread") || (is(0, "Using") && is(1, "devices")) ||
        (is(0, "Collective") && is(1, "test") && is(2, "starting:")) ||
        (is(0, "(B)") && is(1, "(elements)")))
      return true;
  }
  return false;
}

std::vector<std::string> nccl_tests_operations() {
  return {"all_reduce", "all_gather", "reduce_scatter", "alltoall", "broadcast", "sendrecv"};
}

Result<NcclTestsRun> read_nccl_tests(std::string_view text, std::string_view name,
                                     std::string_view operation) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && text[first] == '{')
    return internal::read_nccl_tests_json(text, name, operation);
  return Reader(text, name, operation).run();
}

CsvTable table_of(const NcclTestsRun& run, std::string_view name, std::string_view machine) {
  CsvTable table{.header = {"id", "source", "machine", "gpu", "num_gpus", "nodes", "intra_link",
                            "inter_net", "nccl_version", "op", "dtype", "bytes", "time_us"},
                 .rows = {}};
  for (const NcclTestsRow& row : run.rows) {
    std::optional<Seconds> time;
    for (const auto& way : {row.out_of_place, row.in_place})
      if (way && (!time || way->time < *time)) time = way->time;
    if (!time) continue;
    table.rows.push_back(
        {.line = row.line,
         .fields = {fmt::format("{}:{}", name, row.line), std::string(name), std::string(machine),
                    run.ranks.front().device, fmt::format("{}", run.ranks.size()),
                    fmt::format("{}", run.nodes()), "", "", run.nccl_version, run.operation,
                    row.dtype, fmt::format("{:.0f}", row.size.in_base()),
                    fmt::format("{}", *time / 1_us)}});
  }
  return table;
}

}  // namespace foreshard::calibrate
