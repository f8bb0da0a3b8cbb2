// Reads and writes quantities: readers of YAML, JSON and the command line call `parse`, everything
// that prints calls `format` (quantity.h). Base units have the scale 1. A text that is no quantity
// gives a fault that suggests one; negative numbers are read.
#include "base/quantity.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <vector>

#include "base/check.h"
#include "base/text.h"

namespace foreshard {
namespace {

// Rows: text, scale, whether `format` uses it; ascending by scale, on which `format` relies.
// clang-format off
constexpr std::array kBytes = std::to_array<Suffix>({
    {"B", 1, true}, {"kB", 1e3, false}, {"KiB", 0x1p10, true}, {"MB", 1e6, false},
    {"MiB", 0x1p20, true}, {"GB", 1e9, false}, {"GiB", 0x1p30, true}, {"TB", 1e12, false},
    {"TiB", 0x1p40, true}, {"PB", 1e15, false}, {"PiB", 0x1p50, true}});
constexpr std::array kSeconds = std::to_array<Suffix>({
    {"ns", 1e-9, true}, {"us", 1e-6, true}, {"ms", 1e-3, true}, {"s", 1, true}, {"min", 60, true},
    {"h", 3600, true}, {"d", 86400, true}, {"y", 365.25 * 86400, false}});
constexpr std::array kFlops = std::to_array<Suffix>({
    {"FLOP", 1, true}, {"kFLOP", 1e3, true}, {"MFLOP", 1e6, true}, {"GFLOP", 1e9, true},
    {"TFLOP", 1e12, true}, {"PFLOP", 1e15, true}, {"EFLOP", 1e18, true}, {"ZFLOP", 1e21, true},
    {"YFLOP", 1e24, true}});
constexpr std::array kBytesPerSecond = std::to_array<Suffix>({
    {"bit/s", 1.0 / 8, false}, {"B/s", 1, true},
    {"kbit/s", 1e3 / 8, false}, {"kB/s", 1e3, true},
    {"KiB/s", 0x1p10, false}, {"Mbit/s", 1e6 / 8, false},
    {"MB/s", 1e6, true}, {"MiB/s", 0x1p20, false}, {"Gbit/s", 1e9 / 8, false},
    {"GB/s", 1e9, true}, {"GiB/s", 0x1p30, false},
    {"Tbit/s", 1e12 / 8, false}, {"TB/s", 1e12, true},
    {"TiB/s", 0x1p40, false}, {"PB/s", 1e15, true}});
constexpr std::array kFlopsPerSecond = std::to_array<Suffix>({
    {"FLOP/s", 1, true}, {"kFLOP/s", 1e3, true}, {"MFLOP/s", 1e6, true}, {"GFLOP/s", 1e9, true},
    {"TFLOP/s", 1e12, true}, {"PFLOP/s", 1e15, true}, {"EFLOP/s", 1e18, true}});
constexpr std::array kHertz = std::to_array<Suffix>({
    {"Hz", 1, true}, {"kHz", 1e3, true}, {"MHz", 1e6, true}, {"GHz", 1e9, true}});
constexpr std::array kJoules = std::to_array<Suffix>({
    {"J", 1, true}, {"kJ", 1e3, true}, {"MJ", 1e6, true}, {"kWh", 3.6e6, false}, {"GJ", 1e9, true},
    {"MWh", 3.6e9, false}, {"TJ", 1e12, true}});
constexpr std::array kWatts = std::to_array<Suffix>({
    {"mW", 1e-3, true}, {"W", 1, true}, {"kW", 1e3, true}, {"MW", 1e6, true}, {"GW", 1e9, true}});
constexpr std::array kDollars = std::to_array<Suffix>({{"USD", 1, true}});
constexpr std::array kDollarsPerSecond = std::to_array<Suffix>({
    {"USD/d", 1.0 / 86400, false}, {"USD/h", 1.0 / 3600, true}, {"USD/s", 1, false}});
constexpr std::array kDollarsPerJoule = std::to_array<Suffix>({
    {"USD/MWh", 1 / 3.6e9, false}, {"USD/kWh", 1 / 3.6e6, true}, {"USD/J", 1, false}});
constexpr std::array kKilograms = std::to_array<Suffix>({
    {"g", 1e-3, true}, {"kg", 1, true}, {"t", 1e3, true}, {"kt", 1e6, true}});
constexpr std::array kKilogramsPerJoule = std::to_array<Suffix>({
    {"g/kWh", 1e-3 / 3.6e6, true}, {"kg/kWh", 1 / 3.6e6, true}, {"kg/J", 1, false}});

constexpr std::array kInfos = std::to_array<DimensionInfo>({
    // Name, example, suffixes, whether whole numbers are counts; in the order of Dimension.
    {"a size in bytes", "GiB", kBytes, true},
    {"a duration", "us", kSeconds, false},
    {"an amount of work", "TFLOP", kFlops, true},
    {"a data rate", "Gbit/s", kBytesPerSecond, false},
    {"a rate of work", "TFLOP/s", kFlopsPerSecond, false},
    {"a frequency", "GHz", kHertz, false},
    {"an energy", "kJ", kJoules, false},
    {"a power", "W", kWatts, false},
    {"an amount of money", "USD", kDollars, false},
    {"a price per time", "USD/h", kDollarsPerSecond, false},
    {"a price of energy", "USD/kWh", kDollarsPerJoule, false},
    {"a mass", "kg", kKilograms, false},
    {"a mass per energy", "kg/kWh", kKilogramsPerJoule, false},
});
// clang-format on
static_assert(kInfos.size() == kDimensions);

// Sizes of quantities in their base unit, but for 0: beyond all that there is, and such that no
// product of a few of them is infinite.
constexpr double kLeastSize = 1e-30;
constexpr double kMostSize = 1e30;

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kSpace = " \t";
  const auto first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) - first + 1);
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// A text for a message, shortened and on one line: a text from a file may be long, or have tabs.
std::string quoted(std::string_view text) {
  constexpr std::size_t kMost = 40;
  std::string result = "'";
  for (const char c : text.substr(0, kMost))
    result += static_cast<unsigned char>(c) < ' ' ? ' ' : c;
  return result + (text.size() > kMost ? "...'" : "'");
}

std::vector<std::string> suffixes_of(const DimensionInfo& info) {
  std::vector<std::string> words;
  for (const Suffix& suffix : info.suffixes) words.emplace_back(suffix.text);
  return words;
}

// Other common spellings of units, and the suffixes that they stand for.
struct Spelling {
  std::string_view text;  // In lower case.
  std::string_view suffix;
};
constexpr std::array kSpellings = std::to_array<Spelling>({
    {"kbps", "kbit/s"},
    {"mbps", "Mbit/s"},
    {"gbps", "Gbit/s"},
    {"tbps", "Tbit/s"},
    {"sec", "s"},
    {"secs", "s"},
    {"second", "s"},
    {"seconds", "s"},
    {"msec", "ms"},
    {"usec", "us"},
    {"\u00b5s", "us"},
    {"\u03bcs", "us"},
    {"hour", "h"},
    {"hours", "h"},
    {"day", "d"},
    {"days", "d"},
    {"tflops", "TFLOP/s"},
    {"gflops", "GFLOP/s"},
    {"pflops", "PFLOP/s"},
    {"tflop/sec", "TFLOP/s"},
    {"tflops/s", "TFLOP/s"},
    {"gflops/s", "GFLOP/s"},
    {"pflops/s", "PFLOP/s"},
    {"$", "USD"},
    {"$/h", "USD/h"},
    {"usd/hour", "USD/h"},
    {"usd/hr", "USD/h"},
    {"watt", "W"},
    {"watts", "W"},
    {"byte", "B"},
    {"bytes", "B"},
    {"flops", "FLOP"},
});

bool has(const DimensionInfo& info, std::string_view suffix) {
  return std::any_of(info.suffixes.begin(), info.suffixes.end(),
                     [&](const Suffix& s) { return s.text == suffix; });
}

QuantityFault unknown_suffix(std::string_view text, std::string_view suffix, Dimension dimension) {
  const DimensionInfo& info = dimension_info(dimension);
  QuantityFault fault{
      quoted(suffix) + " in " + quoted(text) + " is not a unit of " + std::string(info.name),
      "units: " + suffix_list(dimension)};
  const auto suggest = [&](std::string_view word) {
    fault.help = "did you mean '" + std::string(word) + "'? " + fault.help;
    return fault;
  };

  const std::string low = lower_case(suffix);
  if (dimension == Dimension::kBytes && (suffix.ends_with("b") || low.ends_with("bit"))) {
    // Bits: "Gb", "Gbit", "Gib". The same prefix in bytes is what is most likely meant.
    std::string bytes(suffix.substr(0, suffix.size() - (low.ends_with("bit") ? 3 : 1)));
    bytes += "B";
    if (bytes == "KB") bytes = "kB";
    fault.what += ": sizes are in bytes; bits exist only in rates";
    if (has(info, bytes)) fault.help = "did you mean '" + bytes + "' (bytes)? " + fault.help;
    return fault;
  }
  if (dimension == Dimension::kBytesPerSecond && suffix.ends_with("b/s")) {
    const std::string prefix(suffix.substr(0, suffix.size() - 3));
    fault.what += ": bits are spelled out";
    fault.help =
        "did you mean '" + prefix + "bit/s' (bits) or '" + prefix + "B/s' (bytes)? " + fault.help;
    return fault;
  }
  if (dimension == Dimension::kBytesPerSecond && suffix.ends_with("Bps")) {
    const std::string prefix(suffix.substr(0, suffix.size() - 3));
    return suggest((prefix == "K" ? "k" : prefix) + "B/s");
  }
  if (dimension == Dimension::kBytesPerSecond && low == "gt/s") {
    fault.help =
        "transfers are not bytes: write the payload rate, e.g. a PCIe 5.0 x16 slot (32 GT/s per "
        "lane) carries about 63 GB/s";
    return fault;
  }
  if (low == "kb" && dimension == Dimension::kBytes) {  // "KB": a small b was taken for bits above
    fault.help = "did you mean 'kB' (1000 bytes) or 'KiB' (1024 bytes)? " + fault.help;
    return fault;
  }
  for (const Spelling& spelling : kSpellings)
    if (spelling.text == low && has(info, spelling.suffix)) return suggest(spelling.suffix);
  // A valid suffix of another dimension explains more than a similar suffix of this one.
  for (std::size_t i = 0; i < kInfos.size(); ++i) {
    if (!has(kInfos[i], suffix)) continue;
    fault.what =
        quoted(text) + " is " + std::string(kInfos[i].name) + ", not " + std::string(info.name);
    if (info.example.starts_with(std::string(suffix) + "/"))
      return suggest(std::string(info.example));
    const std::string per_second = std::string(suffix) + "/s";
    if (has(info, per_second)) return suggest(per_second);
    return fault;
  }
  if (const auto near = nearest_name(suffix, suffixes_of(info))) return suggest(*near);
  return fault;
}

template <class... Format>
std::string digits_of(double value, Format... how) {
  std::array<char, 400> text{};  // the largest double has 309 digits before its point
  const auto [end, status] = std::to_chars(text.data(), text.data() + text.size(), value, how...);
  return {text.data(), end};
}
std::string fixed(double value, int decimals) {
  return digits_of(value, std::chars_format::fixed, decimals);
}

// The shortest text that reads back as the same double; with an exponent if it is at least 1e16 or
// less than 1e-4.
std::string shortest_text(double value) {
  const std::string scientific = digits_of(value, std::chars_format::scientific);
  const auto e = scientific.find('e');
  if (e == std::string::npos) return scientific;  // inf, nan
  const int exponent = std::stoi(scientific.substr(e + 1));
  return exponent >= -4 && exponent < 16 ? digits_of(value, std::chars_format::fixed) : scientific;
}

// Three significant digits, but all before the point, and two behind it below 1: "1.34", "13.4",
// "134", "1023", "0.50".
std::string three_digits(double value) {
  const double size = std::abs(value);
  if (size >= 99.95) return fixed(value, 0);
  if (size >= 9.995) return fixed(value, 1);
  return fixed(value, 2);
}

}  // namespace

const DimensionInfo& dimension_info(Dimension dimension) {
  return kInfos[static_cast<std::size_t>(dimension)];
}

std::string suffix_list(Dimension dimension) {
  return join(suffixes_of(dimension_info(dimension)));
}

std::variant<double, QuantityFault> parse_quantity(std::string_view text, Dimension dimension) {
  const DimensionInfo& info = dimension_info(dimension);
  const std::string_view all = trimmed(text);
  const auto help = [&](std::string_view number) {
    const std::string written(number);
    // Rates of NVLink and memory are given in bytes, rates of networks in bits.
    const std::string other =
        dimension == Dimension::kBytesPerSecond ? "' or '" + written + " GB/s" : "";
    return "write for example '" + written + " " + std::string(info.example) + other +
           "' (units: " + suffix_list(dimension) + ")";
  };
  const auto no_number = [&](std::string_view why) {
    return QuantityFault{quoted(all) + std::string(why), help("2")};
  };

  const std::string_view digits = all.starts_with('-') ? all.substr(1) : all;
  if (digits.empty() || !(is_digit(digits[0]) || digits[0] == '.'))
    return no_number(" does not begin with a decimal number");
  if (digits.starts_with("0x") || digits.starts_with("0X"))
    return no_number(" is hexadecimal; quantities are decimal");

  double number = 0;
  const auto [rest, status] = std::from_chars(all.data(), all.data() + all.size(), number);
  if (status == std::errc::result_out_of_range || !std::isfinite(number))
    return no_number(" is out of the range of numbers");
  if (status != std::errc()) return no_number(" does not begin with a decimal number");

  const std::string_view written(all.data(), static_cast<std::size_t>(rest - all.data()));
  const std::string_view suffix = trimmed(all.substr(written.size()));
  if (suffix.empty()) return QuantityFault{quoted(all) + " has no unit", help(written)};
  for (const Suffix& candidate : info.suffixes) {
    if (candidate.text != suffix) continue;
    const double value = number * candidate.scale;
    const double size = std::abs(value);
    if (value != 0 && !(size >= kLeastSize && size <= kMostSize))
      return no_number(" is out of the range of numbers");
    return value;
  }
  return unknown_suffix(all, suffix, dimension);
}

std::string format_quantity(double in_base, Dimension dimension) {
  const DimensionInfo& info = dimension_info(dimension);
  const Suffix* of_zero = nullptr;  // unit of zero and of infinity: the base unit, or the only one
  std::vector<const Suffix*> shown;
  for (const Suffix& suffix : info.suffixes) {
    if (suffix.scale == 1.0) of_zero = &suffix;
    if (suffix.shown) shown.push_back(&suffix);
  }
  if (shown.size() == 1) of_zero = shown.front();
  const auto with = [](const std::string& number, const Suffix* suffix) {
    return number + " " + std::string(suffix->text);
  };
  if (in_base == 0) return with("0", of_zero);
  if (!std::isfinite(in_base)) return with(shortest_text(in_base), of_zero);

  // The largest suffix in which the *rounded* number is at least 1: 999.96 us is 1.00 ms.
  const double size = std::abs(in_base);
  std::size_t at = 0;
  for (std::size_t i = 1; i < shown.size(); ++i)
    if (std::stod(three_digits(size / shown[i - 1]->scale)) * shown[i - 1]->scale >=
        shown[i]->scale)
      at = i;
  const double value = in_base / shown[at]->scale;
  if (info.counted && shown[at]->scale == 1.0 && value == std::floor(value))
    return with(fixed(value, 0), shown[at]);
  if (std::abs(value) < 0.995 || std::abs(value) >= 1e6)
    return with(digits_of(value, std::chars_format::general, 3), shown[at]);
  return with(three_digits(value), shown[at]);
}

std::string format_quantity_exact(double in_base, Dimension dimension) {
  const DimensionInfo& info = dimension_info(dimension);
  if (in_base == 0) return format_quantity(0, dimension);
  // Every suffix that reads back exactly competes. The shortest number wins; among equally short
  // ones, the largest suffix that format_quantity shows. Where no number is short
  // (63.01538461538462 GB/s), the usual unit wins.
  constexpr std::size_t kShort = 13;  // characters
  std::optional<std::string> best;
  std::optional<std::string> usual;  // in the largest shown unit with a number >= 1
  std::size_t shortest = 0;
  for (const Suffix& suffix : info.suffixes) {
    const std::string number = shortest_text(in_base / suffix.scale);
    if (!std::isfinite(in_base / suffix.scale) || number.find('e') != std::string::npos) continue;
    if (std::stod(number) * suffix.scale != in_base) continue;
    if (suffix.shown && std::abs(in_base) >= suffix.scale)
      usual = number + " " + std::string(suffix.text);
    if (best && (number.size() > shortest || (number.size() == shortest && !suffix.shown)))
      continue;
    best = number + " " + std::string(suffix.text);
    shortest = number.size();
  }
  if (best && shortest > kShort && usual) return *usual;
  if (best) return *best;
  // Only the base unit, whose scale is 1, is sure to give the same double, though it may be unusual
  // (USD/s).
  for (const Suffix& suffix : info.suffixes)
    if (suffix.scale == 1.0) return shortest_text(in_base) + " " + std::string(suffix.text);
  FORESHARD_CHECK(false && "every dimension has a base unit");
  return {};
}

}  // namespace foreshard
