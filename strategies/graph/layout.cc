// Slices of layouts, their verifier fault_in(), and their text. fault_in() calls the three checks
// below and returns the first fault; parse_layout() reads back the text of describe().
#include "strategies/graph/layout.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/check.h"
#include "base/limits.h"
#include "base/text.h"
#include "base/text_cursor.h"

namespace foreshard {
namespace {

std::size_t index(Axis axis) {
  return static_cast<std::size_t>(axis);
}

std::string text_of(const Shape& shape) {
  std::string text;
  for (const auto extent : shape) text += (text.empty() ? "" : ", ") + std::to_string(extent);
  return "[" + text + "]";
}

// Bound on the product of the axis sizes: a rank is an int32.
constexpr std::int64_t kMostRanks = std::int64_t{1} << 31;

std::optional<std::string> fault_in(const ProcessMesh& mesh) {
  if (mesh.ranks.empty()) return "the mesh has no rank: give at least one, such as @0";
  std::int64_t product = 1;
  for (std::size_t a = 0; a < mesh.axes.size(); ++a) {
    const MeshAxis& axis = mesh.axes[a];
    if (axis.size < 1)
      return "axis '" + axis.name + "' has size " + std::to_string(axis.size) +
             ": a size is at least 1";
    if (axis.size > kMostRanks / product)
      return "the axis sizes multiply to more than " + std::to_string(kMostRanks) + " ranks";
    product *= axis.size;
    for (std::size_t b = 0; b < a; ++b)
      if (mesh.axes[b].name == axis.name)
        return "two axes are named '" + axis.name + "': names are distinct";
  }
  if (product != mesh.size())
    return "the axis sizes multiply to " + std::to_string(product) + ", but the mesh has " +
           std::to_string(mesh.size()) + " ranks: give it " + std::to_string(product);
  std::vector<std::int32_t> sorted = mesh.ranks;
  std::ranges::sort(sorted);
  if (sorted.front() < 0)
    return "rank " + std::to_string(sorted.front()) + " is negative: ranks count from 0";
  const auto twice = std::ranges::adjacent_find(sorted);
  if (twice != sorted.end())
    return "rank " + std::to_string(*twice) + " is in the mesh twice: a rank has one position";
  return std::nullopt;
}

// Checks constraint 4 of the verifier (layout.h): every axis exists and is used once, and the
// partial axes ascend and have one reduction.
std::optional<std::string> fault_in_axes(const Attribute& attribute, const ProcessMesh& mesh) {
  std::vector<std::string> user(mesh.axes.size());
  const auto use = [&](Axis axis, const std::string& by) -> std::optional<std::string> {
    if (axis < 0 || index(axis) >= mesh.axes.size())
      return by + " uses axis " + std::to_string(axis) + ", but the mesh has " +
             std::to_string(mesh.axes.size()) + " axes";
    std::string& before = user[index(axis)];
    if (!before.empty())
      return "axis '" + mesh.axes[index(axis)].name + "' is used twice, by " + before + " and by " +
             by + ": an axis does one thing";
    before = by;
    return std::nullopt;
  };
  for (std::size_t d = 0; d < attribute.dims.size(); ++d)
    for (const Axis axis : attribute.dims[d])
      if (auto fault = use(axis, "dimension " + std::to_string(d))) return fault;
  for (std::size_t i = 0; i < attribute.partial.size(); ++i) {
    const Partial& partial = attribute.partial[i];
    if (auto fault = use(partial.axis, "the partial " + std::string(name_of(partial.reduction))))
      return fault;
    if (i > 0 && attribute.partial[i - 1].axis > partial.axis)
      return "the partial axes are not in ascending order";
    if (partial.reduction != attribute.partial[0].reduction)
      return "the partial axes mix " + std::string(name_of(attribute.partial[0].reduction)) +
             " and " + std::string(name_of(partial.reduction)) +
             ", whose order would matter: reduce one of them first";
  }
  return std::nullopt;
}

// Checks constraints 5 and 6 of the verifier (layout.h): explicit slice sizes are one per part, not
// negative, and add up to the dimension; without them, the parts divide it.
std::optional<std::string> fault_in_dimension(const Layout& layout, const Shape& shape,
                                              std::size_t d) {
  const Attribute& attribute = layout.attribute;
  const std::int64_t parts = ways(attribute.dims[d], layout.mesh.axes);
  const std::string dimension = "dimension " + std::to_string(d);
  std::string by;
  for (const Axis axis : attribute.dims[d])
    by += (by.empty() ? "" : "+") + layout.mesh.axes[index(axis)].name;
  if (d >= attribute.sizes.size() || attribute.sizes[d].empty()) {
    if (shape[d] % parts == 0) return std::nullopt;
    return dimension + " of extent " + std::to_string(shape[d]) + " is not divisible by the " +
           std::to_string(parts) + " parts of '" + by + "': give explicit slice sizes, such as " +
           by + "~ (as equal as possible), or choose another dimension";
  }
  const auto& sizes = attribute.sizes[d];
  const std::string axes = by.empty() ? "it is not split" : "'" + by + "' makes them";
  if (static_cast<std::int64_t>(sizes.size()) != parts)
    return dimension + " lists " + std::to_string(sizes.size()) + " slice sizes, but has " +
           std::to_string(parts) + " parts (" + axes + "): one size for each";
  const auto negative = std::ranges::find_if(sizes, [](std::int64_t size) { return size < 0; });
  if (negative != sizes.end())
    return dimension + " has a slice of the negative size " + std::to_string(*negative);
  std::int64_t left = shape[d];
  for (const auto size : sizes) {
    if (size > left)
      return dimension + " is " + std::to_string(shape[d]) + " long, but its slices " +
             text_of(sizes) + " add up to more: they must cover it exactly";
    left -= size;
  }
  if (left > 0)
    return dimension + " is " + std::to_string(shape[d]) + " long, but its slices " +
           text_of(sizes) + " add up to " + std::to_string(shape[d] - left) +
           ": they must cover it";
  return std::nullopt;
}

// Parser with one method per rule of the grammar; each returns its error, if there is one.
class LayoutReader {
 public:
  LayoutReader(std::string_view text, const Shape& shape)
      : cursor_("layout", text), shape_(shape) {}

  Result<Layout> layout() {
    if (!cursor_.sees('@') && !cursor_.sees('[')) FORESHARD_TRY(list([&] { return axis(); }));
    FORESHARD_TRY(ranks());
    if (!cursor_.take('[')) return cursor_.expected("'[' and what each dimension does");
    if (!cursor_.sees(']')) FORESHARD_TRY(list([&] { return dim(); }));
    if (!cursor_.take(']')) return cursor_.expected("',' or ']'");
    while (!cursor_.at_end()) FORESHARD_TRY(partial());
    std::ranges::sort(attribute().partial, {}, &Partial::axis);
    if (std::ranges::all_of(attribute().sizes, [](const auto& sizes) { return sizes.empty(); }))
      attribute().sizes.clear();
    if (const auto fault = fault_in(layout_, shape_))
      return Error{Error::Code::kInvalidInput, "layout: " + *fault};
    return std::move(layout_);
  }

 private:
  Attribute& attribute() { return layout_.attribute; }

  template <class Item>
  Status list(Item item) {
    do {
      FORESHARD_TRY(item());
    } while (cursor_.take(','));
    return {};
  }

  Status axis() {
    const std::size_t place = cursor_.place();
    auto name = cursor_.name();
    if (!name) return cursor_.expected("an axis such as tp=4, '@' or '['");
    if (find(*name)) return cursor_.error(place, "axis '" + *name + "' is declared twice");
    if (!cursor_.take('=')) return cursor_.expected("'=' and the size of axis '" + *name + "'");
    const std::size_t where = cursor_.place();
    const auto size = cursor_.number();
    if (!size) return cursor_.expected("the size of axis '" + *name + "', a whole number");
    if (*size < 1) return cursor_.error(where, "an axis has a size of at least 1");
    if (*size > most_ranks_ / size_)
      return cursor_.error(where,
                           "that is more than " + std::to_string(most_ranks_) + " ranks in all");
    size_ *= *size;
    layout_.mesh.axes.push_back({.name = *std::move(name), .size = *size});
    return {};
  }

  Status ranks() {
    if (!cursor_.take('@')) {
      layout_.mesh = mesh_from(std::move(layout_.mesh.axes));
      return {};
    }
    return list([&] { return range(); });
  }
  Status range() {
    const std::size_t place = cursor_.place();
    const auto first = cursor_.number();
    if (!first) return cursor_.expected("a rank or a range such as 0-7");
    std::int64_t last = *first;
    if (cursor_.take('-')) {
      const auto end = cursor_.number();
      if (!end) return cursor_.expected("the last rank of the range");
      last = *end;
    }
    if (last < *first) return cursor_.error(place, "the range ends before it begins");
    if (last > std::numeric_limits<std::int32_t>::max())
      return cursor_.error(place, "no rank is that high");
    if (last - *first >= most_ranks_ - layout_.mesh.size())
      return cursor_.error(place, "more than " + std::to_string(most_ranks_) + " ranks");
    for (std::int64_t rank = *first; rank <= last; ++rank)
      layout_.mesh.ranks.push_back(static_cast<std::int32_t>(rank));
    return {};
  }

  std::optional<Axis> find(const std::string& name) const {
    const auto it = std::ranges::find(layout_.mesh.axes, name, &MeshAxis::name);
    if (it == layout_.mesh.axes.end()) return std::nullopt;
    return static_cast<Axis>(it - layout_.mesh.axes.begin());
  }
  // Reads the name of an axis into `axis`.
  Status used_axis(Axis& axis) {
    const std::size_t place = cursor_.place();
    const auto name = cursor_.name();
    if (!name) return cursor_.expected("the name of an axis");
    const auto found = find(*name);
    if (!found) {
      std::vector<std::string> known;
      for (const MeshAxis& declared : layout_.mesh.axes) known.push_back(declared.name);
      return cursor_.error(place, "no axis is named '" + *name + "': declared is " +
                                      (known.empty() ? "none" : quoted_choice(known)) + "; add " +
                                      *name + "=SIZE before the dimensions");
    }
    if (std::ranges::find(used_, *found) != used_.end())
      return cursor_.error(place, "axis '" + *name + "' is used twice: an axis does one thing");
    used_.push_back(*found);
    axis = *found;
    return {};
  }

  Status dim() {
    const std::size_t d = attribute().dims.size();
    auto& axes = attribute().dims.emplace_back();
    auto& sizes = attribute().sizes.emplace_back();
    if (!cursor_.take('-')) {
      do {
        Axis axis = 0;
        FORESHARD_TRY(used_axis(axis));
        axes.push_back(axis);
      } while (cursor_.take('+'));
    }
    const std::size_t place = cursor_.place();
    if (cursor_.take('~')) {
      if (d >= shape_.size())
        return cursor_.error(
            place, "the tensor has only " + std::to_string(shape_.size()) + " dimensions");
      sizes = balanced_sizes(shape_[d], ways(axes, layout_.mesh.axes));
      return {};
    }
    if (!cursor_.take('{')) return {};
    FORESHARD_TRY(list([&] { return slice_size(sizes); }));
    if (!cursor_.take('}')) return cursor_.expected("',' or '}'");
    return {};
  }
  Status slice_size(std::vector<std::int64_t>& sizes) {
    const auto size = cursor_.number();
    if (!size) return cursor_.expected("the size of a slice, a whole number");
    sizes.push_back(*size);
    return {};
  }

  Status partial() {
    const std::size_t place = cursor_.place();
    const auto word = cursor_.name();
    if (!word) return cursor_.expected("sum(...), max(...) or min(...), or the end");
    std::optional<Reduction> reduction;
    for (const Reduction kind : {Reduction::kSum, Reduction::kMax, Reduction::kMin})
      if (*word == name_of(kind)) reduction = kind;
    if (!reduction)
      return cursor_.error(place, "'" + *word + "' is not a reduction: write sum, max or min");
    if (!cursor_.take('(')) return cursor_.expected("'(' and the partial axes");
    FORESHARD_TRY(list([&]() -> Status {
      Axis axis = 0;
      FORESHARD_TRY(used_axis(axis));
      attribute().partial.push_back({axis, *reduction});
      return {};
    }));
    if (!cursor_.take(')')) return cursor_.expected("',' or ')'");
    return {};
  }

  TextCursor cursor_;
  const std::int64_t most_ranks_ = limits::raised(limits::kLayoutRanks);
  const Shape& shape_;
  Layout layout_;
  std::int64_t size_ = 1;
  std::vector<Axis> used_;
};

}  // namespace

ProcessMesh mesh_from(std::vector<MeshAxis> axes, std::int32_t first) {
  std::int64_t size = 1;
  for (const MeshAxis& axis : axes) size *= axis.size;
  ProcessMesh mesh{.axes = std::move(axes)};
  mesh.ranks.resize(static_cast<std::size_t>(size));
  std::iota(mesh.ranks.begin(), mesh.ranks.end(), first);
  return mesh;
}

Layout replicated_on(ProcessMesh mesh, std::size_t dimensions) {
  return {.mesh = std::move(mesh), .attribute = replicated(dimensions)};
}

bool is_partial(const Layout& layout) {
  return std::ranges::any_of(layout.attribute.partial, [&](const Partial& partial) {
    return layout.mesh.axes[index(partial.axis)].size > 1;
  });
}

bool Box::empty() const {
  for (std::size_t d = 0; d < begin.size(); ++d)
    if (begin[d] >= end[d]) return true;
  return false;
}

std::int64_t Box::elements() const {
  std::int64_t count = 1;
  for (std::size_t d = 0; d < begin.size(); ++d)
    count *= std::max<std::int64_t>(end[d] - begin[d], 0);
  return count;
}

Box whole_of(const Shape& shape) {
  return {.begin = Shape(shape.size(), 0), .end = shape};
}

Box intersection(const Box& a, const Box& b) {
  Box both = a;
  for (std::size_t d = 0; d < both.begin.size(); ++d) {
    both.begin[d] = std::max(a.begin[d], b.begin[d]);
    both.end[d] = std::max(both.begin[d], std::min(a.end[d], b.end[d]));
  }
  return both;
}

std::int64_t coordinate_of(const ProcessMesh& mesh, std::int64_t position, Axis axis) {
  for (std::size_t a = 0; a < index(axis); ++a) position /= mesh.axes[a].size;
  return position % mesh.axes[index(axis)].size;
}

std::vector<std::int64_t> slice_sizes(const Layout& layout, const Shape& shape, std::size_t dim) {
  const Attribute& attribute = layout.attribute;
  if (dim < attribute.sizes.size() && !attribute.sizes[dim].empty()) return attribute.sizes[dim];
  const std::int64_t parts = ways(attribute.dims[dim], layout.mesh.axes);
  FORESHARD_CHECK(shape[dim] % parts == 0);
  return std::vector<std::int64_t>(static_cast<std::size_t>(parts), shape[dim] / parts);
}

Slices::Slices(const Layout& layout, const Shape& shape) {
  std::vector<std::int64_t> strides;
  std::int64_t stride = 1;
  for (const MeshAxis& axis : layout.mesh.axes) {
    strides.push_back(stride);
    stride *= axis.size;
  }
  digits_.resize(shape.size());
  for (std::size_t d = 0; d < shape.size(); ++d) {
    std::int64_t weight = 1;
    const auto& axes = layout.attribute.dims[d];
    for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
      const std::int64_t size = layout.mesh.axes[index(*axis)].size;
      digits_[d].push_back({strides[index(*axis)], size, weight});
      weight *= size;
    }
    std::vector<std::int64_t> bounds{0};
    for (const auto extent : slice_sizes(layout, shape, d))
      bounds.push_back(bounds.back() + extent);
    bounds_.push_back(std::move(bounds));
  }
}

std::int64_t Slices::part_of(std::int64_t position, std::size_t dim) const {
  std::int64_t part = 0;
  for (const Digit& digit : digits_[dim])
    part += position / digit.stride % digit.size * digit.weight;
  return part;
}

Box Slices::of(std::int64_t position) const {
  Box box;
  box.begin.reserve(bounds_.size());
  box.end.reserve(bounds_.size());
  for (std::size_t d = 0; d < bounds_.size(); ++d) {
    const auto [begin, end] = range(position, d);
    box.begin.push_back(begin);
    box.end.push_back(end);
  }
  return box;
}

std::int64_t Slices::widest(std::size_t dim) const {
  std::int64_t extent = 0;
  for (std::size_t i = 1; i < bounds_[dim].size(); ++i)
    extent = std::max(extent, bounds_[dim][i] - bounds_[dim][i - 1]);
  return extent;
}

std::int64_t Slices::largest() const {
  std::int64_t elements = 1;
  for (std::size_t d = 0; d < bounds_.size(); ++d) elements *= widest(d);
  return elements;
}

Box slice_of(const Layout& layout, const Shape& shape, std::int64_t position) {
  return Slices(layout, shape).of(position);
}

std::vector<std::int64_t> balanced_sizes(std::int64_t extent, std::int64_t parts) {
  std::vector<std::int64_t> sizes(static_cast<std::size_t>(parts), extent / parts);
  for (std::int64_t i = 0; i < extent % parts; ++i) ++sizes[static_cast<std::size_t>(i)];
  return sizes;
}

std::optional<std::string> fault_in(const Layout& layout, const Shape& shape) {
  const Attribute& attribute = layout.attribute;
  for (std::size_t d = 0; d < shape.size(); ++d)
    if (shape[d] < 0)
      return "dimension " + std::to_string(d) + " has the negative extent " +
             std::to_string(shape[d]);
  if (auto fault = fault_in(layout.mesh)) return fault;
  if (attribute.dims.size() != shape.size())
    return "the attribute maps " + std::to_string(attribute.dims.size()) +
           " dimensions, but the tensor has " + std::to_string(shape.size()) + ": " +
           text_of(shape);
  if (auto fault = fault_in_axes(attribute, layout.mesh)) return fault;
  if (!attribute.sizes.empty() && attribute.sizes.size() != shape.size())
    return "explicit slice sizes are given for " + std::to_string(attribute.sizes.size()) +
           " dimensions, but the tensor has " + std::to_string(shape.size()) +
           ": one list per dimension, empty where even, or none at all";
  for (std::size_t d = 0; d < shape.size(); ++d)
    if (auto fault = fault_in_dimension(layout, shape, d)) return fault;
  return std::nullopt;
}

std::string describe_ranks(const std::vector<std::int32_t>& ranks) {
  std::string text;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t last = i;
    while (last + 1 < ranks.size() && ranks[last + 1] == ranks[last] + 1) ++last;
    text += (text.empty() ? "" : ",") + std::to_string(ranks[i]);
    if (last > i) text += (last == i + 1 ? "," : "-") + std::to_string(ranks[last]);
    i = last + 1;
  }
  return text;
}

// parse_layout() reads this text back: both change together.
std::string describe(const Layout& layout) {
  const auto name = [&](Axis axis) -> const std::string& {
    return layout.mesh.axes[index(axis)].name;
  };
  const Attribute& attribute = layout.attribute;
  std::string text;
  for (const MeshAxis& axis : layout.mesh.axes)
    text += (text.empty() ? "" : ",") + axis.name + "=" + std::to_string(axis.size);
  text += (text.empty() ? "@" : " @") + describe_ranks(layout.mesh.ranks) + " [";
  for (std::size_t d = 0; d < attribute.dims.size(); ++d) {
    if (d > 0) text += ", ";
    const auto& axes = attribute.dims[d];
    if (axes.empty()) text += "-";
    for (std::size_t i = 0; i < axes.size(); ++i) text += (i > 0 ? "+" : "") + name(axes[i]);
    if (d >= attribute.sizes.size() || attribute.sizes[d].empty()) continue;
    text += "{";
    for (std::size_t i = 0; i < attribute.sizes[d].size(); ++i)
      text += (i > 0 ? "," : "") + std::to_string(attribute.sizes[d][i]);
    text += "}";
  }
  text += "]";
  for (const Reduction reduction : {Reduction::kSum, Reduction::kMax, Reduction::kMin}) {
    std::string axes;
    for (const Partial& partial : attribute.partial)
      if (partial.reduction == reduction) axes += (axes.empty() ? "" : ",") + name(partial.axis);
    if (!axes.empty()) text += " " + std::string(name_of(reduction)) + "(" + axes + ")";
  }
  return text;
}

Result<Layout> parse_layout(std::string_view text, const Shape& shape) {
  return LayoutReader(text, shape).layout();
}

}  // namespace foreshard
