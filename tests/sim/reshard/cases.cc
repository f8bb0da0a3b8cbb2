#include "tests/sim/reshard/cases.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace foreshard::reshard {
namespace {

// The rows cut as equally as can be.
Layout rows_on(std::int32_t first, std::int64_t ranks, const TensorSpec& tensor) {
  Layout layout = on({{"x", ranks}}, {{0}, {}}, first);
  if (tensor.shape[0] % ranks != 0)
    layout.attribute.sizes = {balanced_sizes(tensor.shape[0], ranks), {}};
  return layout;
}

class Draw {
 public:
  Draw(std::mt19937& random, std::int32_t ranks, const Shape& shape)
      : random_(random), ranks_(ranks), shape_(shape) {}

  std::int64_t below(std::int64_t n) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(n));
  }

  ProcessMesh mesh() {
    std::vector<MeshAxis> axes;
    std::int64_t size = 1;
    const std::int64_t count = 1 + below(3);
    for (std::int64_t a = 0; a < count; ++a) {
      const std::int64_t most = std::min<std::int64_t>(8, ranks_ / size);
      const std::int64_t extent =
          below(4) == 0 ? 1 + below(most) : std::min<std::int64_t>(most, 2LL << below(3));
      axes.push_back({std::string(1, static_cast<char>('a' + a)), extent});
      size *= extent;
    }
    ProcessMesh mesh =
        mesh_from(std::move(axes), static_cast<std::int32_t>(below(ranks_ - size + 1)));
    if (below(8) == 0) std::shuffle(mesh.ranks.begin(), mesh.ranks.end(), random_);
    return mesh;
  }

  Layout layout(ProcessMesh mesh, bool partial) {
    Layout layout{.mesh = std::move(mesh), .attribute = replicated(shape_.size())};
    for (Axis axis = 0; axis < static_cast<Axis>(layout.mesh.axes.size()); ++axis) {
      const std::int64_t what = below(partial ? 6 : 5);
      if (what == 5) {
        layout.attribute.partial.push_back({axis});
      } else if (what > 0) {
        layout.attribute.dims[static_cast<std::size_t>(below(std::ssize(shape_)))].push_back(axis);
      }
    }
    for (std::size_t d = 0; d < shape_.size(); ++d) {
      const std::int64_t parts = ways(layout.attribute.dims[d], layout.mesh.axes);
      if (shape_[d] % parts == 0) continue;
      layout.attribute.sizes.resize(shape_.size());
      layout.attribute.sizes[d] = balanced_sizes(shape_[d], parts);
    }
    return layout;
  }

 private:
  std::mt19937& random_;
  std::int32_t ranks_;
  const Shape& shape_;
};

}  // namespace

Layout on(std::vector<MeshAxis> axes, std::vector<std::vector<Axis>> dims, std::int32_t first) {
  return {.mesh = mesh_from(std::move(axes), first), .attribute = {.dims = std::move(dims)}};
}

std::vector<Case> named_cases() {
  const TensorSpec weight{.dtype = DType::kBf16, .shape = {8192, 53248}};
  const TensorSpec layers{.dtype = DType::kBf16, .shape = {8, 8192, 8192}};
  Layout partial = on({{"x", 8}}, {{}, {}});
  partial.attribute.partial = {{0}};
  return {
      {"S(0) -> S(1), 16 ranks", weight, on({{"x", 16}}, {{0}, {}}), on({{"x", 16}}, {{}, {0}})},
      {"dp8 tp2 -> dp2 tp8 regroup", weight, on({{"tp", 2}, {"dp", 8}}, {{}, {0}}),
       on({{"tp", 8}, {"dp", 2}}, {{}, {0}})},
      {"uneven 3 -> 4 ranks", weight, rows_on(0, 3, weight), rows_on(0, 4, weight)},
      {"overlapping 0-5 -> 2-9", weight, rows_on(0, 6, weight), rows_on(2, 8, weight)},
      {"mesh transpose 4 x 4", weight, on({{"a", 4}, {"b", 4}}, {{0}, {1}}),
       on({{"a", 4}, {"b", 4}}, {{1}, {0}})},
      {"(S0, B) -> (B, S1)", weight, on({{"a", 4}, {"b", 4}}, {{0}, {}}),
       on({{"a", 4}, {"b", 4}}, {{}, {1}})},
      {"P -> S, other node", weight, partial, on({{"y", 8}}, {{0}, {}}, 8)},
      {"tp8 -> tp4 x pp2", layers, on({{"tp", 8}}, {{}, {}, {0}}),
       on({{"tp", 4}, {"pp", 2}}, {{1}, {}, {0}})},
      {"8 -> 12, node joined", weight, rows_on(0, 8, weight), rows_on(0, 12, weight)},
      {"16 -> 15, one left", weight, rows_on(0, 16, weight), rows_on(0, 15, weight)},
      // Half of the tensor has to enter each node: 1.12 ms of adapters at their full rate, which
      // an exchange does not reach (91.5 % of it, Hopper, Simple), and the columns have to be
      // packed.
      {"sharded dp16 -> tp8 on both", weight, on({{"dp", 16}}, {{0}, {}}),
       on({{"tp", 8}, {"dp", 2}}, {{}, {0}}), 1.9},
  };
}

Case random_case(std::mt19937& random, std::int32_t ranks) {
  Case made{.name = "random", .tensor = {.dtype = DType::kBf16, .shape = {}}};
  const std::size_t dimensions = 1 + random() % 3;
  // Between 1 KiB and 1 GiB.
  const double bits = 9 + static_cast<double>(random() % 21);
  for (std::size_t d = 0; d < dimensions; ++d) {
    const auto extent =
        static_cast<std::int64_t>(std::exp2(bits / static_cast<double>(dimensions)));
    made.tensor.shape.push_back(
        std::max<std::int64_t>(64, random() % 4 == 0 ? extent : (extent + 63) / 64 * 64));
  }
  Draw draw(random, ranks, made.tensor.shape);
  const ProcessMesh mesh = draw.mesh();
  made.from = draw.layout(mesh, true);
  made.to = draw.layout(draw.below(2) == 0 ? mesh : draw.mesh(), false);
  return made;
}

}  // namespace foreshard::reshard
