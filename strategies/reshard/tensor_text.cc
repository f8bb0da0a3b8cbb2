#include "strategies/reshard/tensor_text.h"

#include <optional>

#include "base/text.h"
#include "base/text_cursor.h"

#include "strategies/program/ir/kernel.h"

namespace foreshard::reshard {
namespace {

constexpr double kMostBytes = 9007199254740992;  // 2^53

std::string known_types() {
  return quoted_choice(dtype_names());
}

}  // namespace

Result<TensorSpec> parse_tensor(std::string_view text) {
  TextCursor cursor("tensor", text);
  const std::size_t place = cursor.place();
  const auto word = cursor.name();
  if (!word) return cursor.expected("an element type such as bf16");
  const auto dtype = find_dtype(*word);
  if (!dtype)
    return cursor.error(place,
                        "'" + *word + "' is not an element type: known are " + known_types());
  TensorSpec tensor{.dtype = *dtype};
  if (!cursor.take('[')) return cursor.expected("'[' and the extents, as in bf16[8192, 53248]");
  double bytes = size_of(*dtype).in_base();
  if (!cursor.sees(']')) {
    do {
      const std::size_t where = cursor.place();
      const auto extent = cursor.number();
      if (!extent) return cursor.expected("the extent of a dimension, a whole number");
      bytes *= static_cast<double>(*extent);
      if (bytes > kMostBytes || *extent > static_cast<std::int64_t>(kMostBytes))
        return cursor.error(where, "with this dimension the tensor has more than 2^53 bytes");
      tensor.shape.push_back(*extent);
    } while (cursor.take(','));
  }
  if (!cursor.take(']')) return cursor.expected("',' or ']'");
  if (!cursor.at_end()) return cursor.expected("the end of the text");
  return tensor;
}

std::string describe(const TensorSpec& tensor) {
  std::string text = std::string(name_of(tensor.dtype)) + "[";
  for (std::size_t d = 0; d < tensor.shape.size(); ++d)
    text += (d > 0 ? ", " : "") + std::to_string(tensor.shape[d]);
  return text + "]";
}

}  // namespace foreshard::reshard
