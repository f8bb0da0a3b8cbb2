/// \file
/// Quantities as text: `400 Gbit/s`, `80 GiB`, `2 us`, `312 TFLOP/s`, `2.5 USD/h`.
///
/// One table of suffixes per dimension (`dimension_info`) feeds the parser, its messages, the JSON
/// Schema and the documentation.
///
///     parse<BytesPerSecond>("400 Gbit/s")  // 50 GB/s
///     parse<BytesPerSecond>("400")         // kInvalidInput: '400' has no unit ...
///     format(1.34217728_ms)                // "1.34 ms": for people, three significant digits
///     format_exact(1.34217728_ms)          // "1.34217728 ms": reads back as the same value
///
/// Grammar: an optional minus, a decimal number, spaces, a suffix. Suffixes are case-sensitive: `M`
/// is 1e6, `Mi` is 2^20, `b` and `bit` are bits and exist only in rates, `B` is bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"
#include "base/units.h"

namespace foreshard {

enum class Dimension : std::uint8_t {
  kBytes,
  kSeconds,
  kFlops,
  kBytesPerSecond,
  kFlopsPerSecond,
  kHertz,
  kJoules,
  kWatts,
  kDollars,
  kDollarsPerSecond,
  kDollarsPerJoule,
  kKilograms,
  kKilogramsPerJoule,
};
inline constexpr std::size_t kDimensions = 13;

struct Suffix {
  std::string_view text;
  double scale;  ///< Value in base units.
  bool shown;    ///< `format` uses it; `parse` and `format_exact` use all.
};

struct DimensionInfo {
  std::string_view name;             ///< Name with its article: "a data rate".
  std::string_view example;          ///< A typical suffix, for help: "Gbit/s".
  std::span<const Suffix> suffixes;  ///< Ascending scale.
  bool counted;                      ///< Whole base units are written without decimals.
};

const DimensionInfo& dimension_info(Dimension dimension);

/// The legal suffixes, comma-separated: "B, kB, KiB, ...".
std::string suffix_list(Dimension dimension);

/// Why a text is not a quantity: what was found, and what to write instead.
struct QuantityFault {
  std::string what;
  std::string help;
};

/// Reads `text` as a quantity of `dimension`, in its base unit. The value is finite; signs are
/// kept.
std::variant<double, QuantityFault> parse_quantity(std::string_view text, Dimension dimension);

std::string format_quantity(double in_base, Dimension dimension);
std::string format_quantity_exact(double in_base, Dimension dimension);

/// The dimension of a quantity type; types that no text form exists for do not compile.
template <class Q>
inline constexpr Dimension kDimensionOf = Q::no_text_form_for_this_quantity;
// clang-format off
template <> inline constexpr Dimension kDimensionOf<Bytes> = Dimension::kBytes;
template <> inline constexpr Dimension kDimensionOf<Seconds> = Dimension::kSeconds;
template <> inline constexpr Dimension kDimensionOf<Flops> = Dimension::kFlops;
template <> inline constexpr Dimension kDimensionOf<BytesPerSecond> = Dimension::kBytesPerSecond;
template <> inline constexpr Dimension kDimensionOf<FlopsPerSecond> = Dimension::kFlopsPerSecond;
template <> inline constexpr Dimension kDimensionOf<Hertz> = Dimension::kHertz;
template <> inline constexpr Dimension kDimensionOf<Joules> = Dimension::kJoules;
template <> inline constexpr Dimension kDimensionOf<Watts> = Dimension::kWatts;
template <> inline constexpr Dimension kDimensionOf<Dollars> = Dimension::kDollars;
template <> inline constexpr Dimension kDimensionOf<DollarsPerSecond> = Dimension::kDollarsPerSecond;
template <> inline constexpr Dimension kDimensionOf<DollarsPerJoule> = Dimension::kDollarsPerJoule;
template <> inline constexpr Dimension kDimensionOf<Kilograms> = Dimension::kKilograms;
template <> inline constexpr Dimension kDimensionOf<KilogramsPerJoule> = Dimension::kKilogramsPerJoule;
// clang-format on

/// \return kInvalidInput where `text` is not a quantity of this dimension; the message shows what
///     to write.
template <class Q>
Result<Q> parse(std::string_view text) {
  const auto read = parse_quantity(text, kDimensionOf<Q>);
  if (const auto* fault = std::get_if<QuantityFault>(&read))
    return Error{Error::Code::kInvalidInput, fault->what + "; " + fault->help};
  return Q::from_base(std::get<double>(read));
}

/// For people: three significant digits and the largest suffix that keeps the number >= 1.
template <int B, int S, int F, int J, int D, int K>
std::string format(Quantity<B, S, F, J, D, K> q) {
  return format_quantity(q.in_base(), kDimensionOf<Quantity<B, S, F, J, D, K>>);
}

/// For files: the shortest text that `parse` turns back into exactly `q`.
/// \pre `q` is finite.
template <int B, int S, int F, int J, int D, int K>
std::string format_exact(Quantity<B, S, F, J, D, K> q) {
  return format_quantity_exact(q.in_base(), kDimensionOf<Quantity<B, S, F, J, D, K>>);
}

}  // namespace foreshard
