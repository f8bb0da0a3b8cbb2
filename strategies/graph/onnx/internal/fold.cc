#include "strategies/graph/onnx/internal/fold.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string_view>
#include <type_traits>

namespace foreshard::onnx_file {
namespace {

using Inputs = std::vector<const Value*>;

std::vector<double> reals(const Numbers& numbers) {
  if (const auto* own = std::get_if<std::vector<double>>(&numbers)) return *own;
  const auto& integers = std::get<std::vector<std::int64_t>>(numbers);
  return {integers.begin(), integers.end()};
}

std::int64_t to_integer(double value) {
  constexpr double kLimit = 9.2e18;
  if (!(value > -kLimit)) return std::numeric_limits<std::int64_t>::min();
  return value < kLimit ? static_cast<std::int64_t>(value)
                        : std::numeric_limits<std::int64_t>::max();
}

std::vector<std::int64_t> integers(const Numbers& numbers) {
  if (const auto* own = std::get_if<std::vector<std::int64_t>>(&numbers)) return *own;
  std::vector<std::int64_t> result;
  for (const double value : std::get<std::vector<double>>(numbers))
    result.push_back(to_integer(value));
  return result;
}

template <class T>
std::vector<T> as(const Numbers& numbers) {
  if constexpr (std::is_same_v<T, double>) return reals(numbers);
  if constexpr (!std::is_same_v<T, double>) return integers(numbers);
}

// Index in `from`, which is broadcast to `shape`, of element `index` of a row-major `shape`.
std::size_t broadcast_index(std::int64_t index, const Shape& shape, const Shape& from) {
  std::int64_t position = 0;
  std::int64_t stride = 1;
  for (std::size_t back = 1; back <= shape.size(); ++back) {
    const std::int64_t extent = shape[shape.size() - back];
    const std::int64_t coordinate = extent == 0 ? 0 : index % extent;
    index = extent == 0 ? 0 : index / extent;
    if (back > from.size()) continue;
    const std::int64_t own = from[from.size() - back];
    if (own != 1) position += coordinate * stride;
    stride *= own;
  }
  return static_cast<std::size_t>(position);
}

template <class T>
std::vector<T> spread(const Value& value, const Shape& shape) {
  const std::vector<T> own = as<T>(*value.numbers);
  std::vector<T> result;
  for (std::int64_t i = 0; i < count_of(shape); ++i)
    result.push_back(own.at(broadcast_index(i, shape, value.shape)));
  return result;
}

std::int64_t wrap(std::int64_t index, std::int64_t extent) {
  return index < 0 ? index + extent : index;
}

// Integer arithmetic in two's complement, as ONNX's integers wrap around; a corrupt file must not
// cause undefined overflow.
template <class Operation>
std::int64_t wrapping(Operation operation, std::int64_t a, std::int64_t b) {
  return static_cast<std::int64_t>(
      operation(static_cast<std::uint64_t>(a), static_cast<std::uint64_t>(b)));
}

std::optional<std::int64_t> integer_result(std::string_view op, std::int64_t a, std::int64_t b) {
  if (op == "Add") return wrapping(std::plus<>(), a, b);
  if (op == "Sub") return wrapping(std::minus<>(), a, b);
  if (op == "Mul") return wrapping(std::multiplies<>(), a, b);
  if (op == "Min") return std::min(a, b);
  if (op == "Max") return std::max(a, b);
  if (op == "And") return a != 0 && b != 0;
  if (op == "Or") return a != 0 || b != 0;
  if (b == 0 || (b == -1 && a == std::numeric_limits<std::int64_t>::min())) return std::nullopt;
  if (op == "Div") return a / b;
  if (op == "Mod") return (a % b + b) % b;
  return std::nullopt;
}

std::optional<double> real_result(std::string_view op, double a, double b) {
  if (op == "Add") return a + b;
  if (op == "Sub") return a - b;
  if (op == "Mul") return a * b;
  if (op == "Div") return a / b;
  if (op == "Pow") return std::pow(a, b);
  if (op == "Min") return std::min(a, b);
  if (op == "Max") return std::max(a, b);
  return std::nullopt;
}

std::optional<bool> comparison(std::string_view op, double a, double b) {
  if (op == "Equal") return a == b;
  if (op == "Greater") return a > b;
  if (op == "GreaterOrEqual") return a >= b;
  if (op == "Less") return a < b;
  if (op == "LessOrEqual") return a <= b;
  return std::nullopt;
}

std::optional<Numbers> binary(const Node& node, const Inputs& inputs, const Shape& shape,
                              bool real) {
  const auto compared = comparison(node.op, 0, 0);
  if (compared || real) {
    const auto a = spread<double>(*inputs[0], shape);
    const auto b = spread<double>(*inputs[1], shape);
    std::vector<std::int64_t> truths;
    std::vector<double> values;
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (compared) {
        truths.push_back(*comparison(node.op, a[i], b[i]) ? 1 : 0);
      } else if (const auto value = real_result(node.op, a[i], b[i])) {
        values.push_back(*value);
      } else {
        return std::nullopt;
      }
    }
    if (compared) return truths;
    return values;
  }
  const auto a = spread<std::int64_t>(*inputs[0], shape);
  const auto b = spread<std::int64_t>(*inputs[1], shape);
  std::vector<std::int64_t> values;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const auto value = integer_result(node.op, a[i], b[i]);
    if (!value) return std::nullopt;
    values.push_back(*value);
  }
  return values;
}

std::optional<Numbers> unary(const Node& node, const Value& input, bool real) {
  if (node.op == "Not") {
    auto values = integers(*input.numbers);
    for (std::int64_t& value : values) value = value == 0 ? 1 : 0;
    return values;
  }
  if (!real) {
    auto values = integers(*input.numbers);
    for (std::int64_t& value : values) {
      if (node.op == "Abs") value = value < 0 ? wrapping(std::minus<>(), 0, value) : value;
      if (node.op == "Neg") value = wrapping(std::minus<>(), 0, value);
    }
    if (node.op != "Abs" && node.op != "Neg") return std::nullopt;
    return values;
  }
  auto values = reals(*input.numbers);
  for (double& value : values) {
    if (node.op == "Abs") value = std::abs(value);
    if (node.op == "Neg") value = -value;
    if (node.op == "Sqrt") value = std::sqrt(value);
    if (node.op == "Floor") value = std::floor(value);
    if (node.op == "Ceil") value = std::ceil(value);
    if (node.op == "Exp") value = std::exp(value);
    if (node.op == "Log") value = std::log(value);
  }
  return values;
}

template <class T>
std::optional<Numbers> gather(const Node& node, const Inputs& inputs, const Shape& shape) {
  const Value& data = *inputs[0];
  const auto rank = static_cast<std::int64_t>(data.shape.size());
  const std::int64_t axis = wrap(integer_of(node, "axis", 0), rank);
  if (axis < 0 || axis >= rank) return std::nullopt;
  const auto at = static_cast<std::size_t>(axis);
  std::int64_t inner = 1;
  for (std::size_t d = at + 1; d < data.shape.size(); ++d) inner *= data.shape[d];
  const std::vector<T> from = as<T>(*data.numbers);
  const auto indices = integers(*inputs[1]->numbers);
  const auto rows = static_cast<std::int64_t>(indices.size());
  std::vector<T> values;
  for (std::int64_t i = 0; i < count_of(shape); ++i) {
    const std::int64_t column = i % inner;
    const std::int64_t row =
        wrap(indices[static_cast<std::size_t>(i / inner % rows)], data.shape[at]);
    const std::int64_t outer = i / inner / rows;
    if (row < 0 || row >= data.shape[at]) return std::nullopt;
    values.push_back(
        from.at(static_cast<std::size_t>((outer * data.shape[at] + row) * inner + column)));
  }
  return values;
}

template <class T>
std::optional<Numbers> concat(const Node& node, const Inputs& inputs, const Shape& shape) {
  const auto rank = static_cast<std::int64_t>(shape.size());
  const std::int64_t axis = wrap(integer_of(node, "axis", 0), rank);
  if (axis < 0 || axis >= rank) return std::nullopt;
  std::int64_t outer = 1;
  for (std::int64_t d = 0; d < axis; ++d) outer *= shape[static_cast<std::size_t>(d)];
  std::vector<T> values;
  for (std::int64_t o = 0; o < outer; ++o) {
    for (const Value* input : inputs) {
      const std::vector<T> own = as<T>(*input->numbers);
      const auto part = static_cast<std::int64_t>(own.size()) / outer;
      values.insert(values.end(), own.begin() + o * part, own.begin() + (o + 1) * part);
    }
  }
  return values;
}

// Begin and step of a slice in each dimension.
struct Steps {
  std::vector<std::int64_t> start;
  std::vector<std::int64_t> step;
};

std::optional<Steps> steps_of(const Inputs& inputs) {
  const Shape& shape = inputs[0]->shape;
  const auto rank = static_cast<std::int64_t>(shape.size());
  if (inputs.size() < 3) return std::nullopt;
  const auto starts = integers(*inputs[1]->numbers);
  std::vector<std::int64_t> axes;
  for (std::size_t i = 0; i < starts.size(); ++i) axes.push_back(static_cast<std::int64_t>(i));
  if (inputs.size() > 3 && inputs[3] != nullptr) axes = integers(*inputs[3]->numbers);
  std::vector<std::int64_t> steps(starts.size(), 1);
  if (inputs.size() > 4 && inputs[4] != nullptr) steps = integers(*inputs[4]->numbers);
  if (axes.size() != starts.size() || steps.size() != starts.size()) return std::nullopt;
  Steps result{.start = std::vector<std::int64_t>(shape.size(), 0),
               .step = std::vector<std::int64_t>(shape.size(), 1)};
  for (std::size_t i = 0; i < starts.size(); ++i) {
    const std::int64_t axis = wrap(axes[i], rank);
    if (axis < 0 || axis >= rank || steps[i] == 0) return std::nullopt;
    const auto at = static_cast<std::size_t>(axis);
    const std::int64_t highest =
        steps[i] > 0 ? shape[at] : std::max<std::int64_t>(shape[at] - 1, 0);
    result.start[at] = std::clamp<std::int64_t>(wrap(starts[i], shape[at]), 0, highest);
    result.step[at] = steps[i];
  }
  return result;
}

template <class T>
std::optional<Numbers> slice(const Inputs& inputs, const Shape& shape) {
  const Shape& whole = inputs[0]->shape;
  const auto steps = steps_of(inputs);
  if (!steps || whole.size() != shape.size()) return std::nullopt;
  const std::vector<T> from = as<T>(*inputs[0]->numbers);
  std::vector<T> values;
  for (std::int64_t i = 0; i < count_of(shape); ++i) {
    std::int64_t rest = i;
    std::int64_t position = 0;
    std::int64_t stride = 1;
    for (std::size_t d = shape.size(); d-- > 0;) {
      position += (steps->start[d] + rest % shape[d] * steps->step[d]) * stride;
      rest /= shape[d];
      stride *= whole[d];
    }
    values.push_back(from.at(static_cast<std::size_t>(position)));
  }
  return values;
}

template <class T>
Numbers where(const Inputs& inputs, const Shape& shape) {
  const auto truths = spread<std::int64_t>(*inputs[0], shape);
  const auto a = spread<T>(*inputs[1], shape);
  const auto b = spread<T>(*inputs[2], shape);
  std::vector<T> values;
  for (std::size_t i = 0; i < truths.size(); ++i) values.push_back(truths[i] != 0 ? a[i] : b[i]);
  return values;
}

template <class T>
Numbers range(const Inputs& inputs, const Shape& shape) {
  const T start = as<T>(*inputs[0]->numbers).at(0);
  const T step = as<T>(*inputs[2]->numbers).at(0);
  std::vector<T> values;
  for (std::int64_t i = 0; i < count_of(shape); ++i)
    values.push_back(static_cast<T>(start + static_cast<T>(i) * step));
  return values;
}

std::optional<Numbers> product(const Value& input) {
  if (input.is_real()) return std::nullopt;
  std::int64_t value = 1;
  for (const std::int64_t factor : integers(*input.numbers))
    value = wrapping(std::multiplies<>(), value, factor);
  return std::vector<std::int64_t>{value};
}

bool one_of(std::string_view word, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, word) != words.end();
}

template <class T>
std::optional<Numbers> moved(const Node& node, const Inputs& inputs, const Shape& shape) {
  if (one_of(node.op, {"Identity", "Cast", "Reshape", "Squeeze", "Unsqueeze", "Flatten"}))
    return as<T>(*inputs[0]->numbers);
  if (node.op == "Expand") return spread<T>(*inputs[0], shape);
  if (node.op == "Gather") return gather<T>(node, inputs, shape);
  if (node.op == "Concat") return concat<T>(node, inputs, shape);
  if (node.op == "Slice") return slice<T>(inputs, shape);
  if (node.op == "Where") return where<T>(inputs, shape);
  if (node.op == "Range") return range<T>(inputs, shape);
  return std::nullopt;
}

std::optional<Numbers> computed(const Node& node, const Inputs& inputs, const Shape& shape,
                                bool real) {
  if (one_of(node.op, {"Add", "Sub", "Mul", "Div", "Mod", "Pow", "Min", "Max", "And", "Or", "Equal",
                       "Greater", "GreaterOrEqual", "Less", "LessOrEqual"}))
    return inputs.size() == 2 ? binary(node, inputs, shape, real) : std::nullopt;
  if (one_of(node.op, {"Abs", "Neg", "Not", "Sqrt", "Floor", "Ceil", "Exp", "Log"}))
    return unary(node, *inputs[0], real);
  if (node.op == "ReduceProd" && count_of(shape) == 1) return product(*inputs[0]);
  return real ? moved<double>(node, inputs, shape) : moved<std::int64_t>(node, inputs, shape);
}

}  // namespace

std::optional<Numbers> folded(const Node& node, const std::vector<const Value*>& inputs,
                              const Shape& shape, bool real) {
  if (inputs.empty() || count_of(shape) > kMostFolded) return std::nullopt;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == nullptr && (i == 0 || node.op != "Slice")) return std::nullopt;
    if (inputs[i] != nullptr && !inputs[i]->numbers) return std::nullopt;
  }
  auto result = computed(node, inputs, shape, real);
  if (result && size_of(*result) != static_cast<std::size_t>(count_of(shape))) return std::nullopt;
  return result;
}

bool Value::is_real() const {
  return dtype == DType::kFp32 || dtype == DType::kFp16 || dtype == DType::kBf16 ||
         dtype == DType::kFp8 || dtype == DType::kTf32;
}

std::int64_t count_of(const Shape& shape) {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  return count;
}

std::size_t size_of(const Numbers& numbers) {
  return std::visit([](const auto& values) { return values.size(); }, numbers);
}

std::int64_t integer_of(const Node& node, const std::string& name, std::int64_t otherwise) {
  const auto found = node.attributes.find(name);
  const auto* value =
      found == node.attributes.end() ? nullptr : std::get_if<std::int64_t>(&found->second);
  return value == nullptr ? otherwise : *value;
}

std::optional<std::vector<std::int64_t>> integers_of(const Node& node, const std::string& name) {
  const auto found = node.attributes.find(name);
  const auto* values = found == node.attributes.end()
                           ? nullptr
                           : std::get_if<std::vector<std::int64_t>>(&found->second);
  return values == nullptr ? std::nullopt : std::optional(*values);
}

double real_of(const Node& node, const std::string& name, double otherwise) {
  const auto found = node.attributes.find(name);
  const auto* value =
      found == node.attributes.end() ? nullptr : std::get_if<double>(&found->second);
  return value == nullptr ? otherwise : *value;
}

std::string text_of(const Node& node, const std::string& name, const std::string& otherwise) {
  const auto found = node.attributes.find(name);
  const auto* value =
      found == node.attributes.end() ? nullptr : std::get_if<std::string>(&found->second);
  return value == nullptr ? otherwise : *value;
}

std::optional<std::vector<std::int64_t>> integers_of(const Value& value) {
  if (!value.numbers) return std::nullopt;
  const auto* own = std::get_if<std::vector<std::int64_t>>(&*value.numbers);
  return own == nullptr ? std::nullopt : std::optional(*own);
}

}  // namespace foreshard::onnx_file
