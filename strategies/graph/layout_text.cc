#include "strategies/graph/layout_text.h"

#include <algorithm>
#include <limits>

#include "base/text.h"
#include "base/text_cursor.h"

namespace foreshard {
namespace {

constexpr std::int64_t kMostRanksOfText = std::int64_t{1} << 22;

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
    if (*size > kMostRanksOfText / size_)
      return cursor_.error(
          where, "that is more than " + std::to_string(kMostRanksOfText) + " ranks in all");
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
    if (last - *first >= kMostRanksOfText - layout_.mesh.size())
      return cursor_.error(place, "more than " + std::to_string(kMostRanksOfText) + " ranks");
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
  const Shape& shape_;
  Layout layout_;
  std::int64_t size_ = 1;
  std::vector<Axis> used_;
};

}  // namespace

Result<Layout> parse_layout(std::string_view text, const Shape& shape) {
  return LayoutReader(text, shape).layout();
}

}  // namespace foreshard
