#include "tests/oracle/internal/optimizers.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <numeric>

#include "base/check.h"

namespace foreshard::execute {
namespace {

bool is_matrix(const Parameter& parameter) {
  return is_matrix_of_layer({.name = parameter.name, .shape = parameter.shape});
}

// The elements of every rank, by position of the mesh.
void each(Parameter& parameter,
          const std::function<void(std::size_t position, std::size_t i)>& visit) {
  for (std::size_t p = 0; p < parameter.kept.of_position.size(); ++p)
    for (std::size_t i = 0; i < parameter.kept.of_position[p].size(); ++i) visit(p, i);
}

// The direction of Adam's step, with new moments and without the learning rate (Kingma and Ba,
// "Adam", ICLR 2015, algorithm 1, with decoupled weight decay).
double adam_direction(Parameter& parameter, const UpdateOf& of, std::size_t p, std::size_t i) {
  const AdamOptions& adam = of.options.adam;
  const auto t = static_cast<double>(adam.step);
  const double g = parameter.gradients.of_position[p][i] * of.clip;
  double& m = parameter.first_moment.of_position[p][i];
  double& v = parameter.second_moment.of_position[p][i];
  m = adam.beta1 * m + (1 - adam.beta1) * g;
  v = adam.beta2 * v + (1 - adam.beta2) * g * g;
  const double m_hat = m / (1 - std::pow(adam.beta1, t));
  const double v_hat = v / (1 - std::pow(adam.beta2, t));
  return m_hat / (std::sqrt(v_hat) + adam.epsilon) +
         adam.weight_decay * parameter.kept.of_position[p][i];
}

void adam(Parameter& parameter, const UpdateOf& of) {
  each(parameter, [&](std::size_t p, std::size_t i) {
    const double direction = adam_direction(parameter, of, p, i);
    parameter.kept.of_position[p][i] -= of.options.adam.learning_rate * direction;
  });
}

void sgd(Parameter& parameter, const UpdateOf& of) {
  const AdamOptions& options = of.options.adam;
  each(parameter, [&](std::size_t p, std::size_t i) {
    double& m = parameter.first_moment.of_position[p][i];
    m = options.beta1 * m + of.clip * parameter.gradients.of_position[p][i];
    parameter.kept.of_position[p][i] -= options.learning_rate * m;
  });
}

// --- 8 bits --------------------------------------------------------------------------------------

// Blocks of so many neighbours in what the rank holds, to `levels` steps of their largest value.
void quantize(std::vector<double>& values, std::int64_t block, double levels) {
  for (std::size_t begin = 0; begin < values.size(); begin += static_cast<std::size_t>(block)) {
    const std::size_t end = std::min(values.size(), begin + static_cast<std::size_t>(block));
    double largest = 0;
    for (std::size_t i = begin; i < end; ++i) largest = std::max(largest, std::abs(values[i]));
    if (largest == 0) continue;
    for (std::size_t i = begin; i < end; ++i)
      values[i] = std::round(values[i] / largest * levels) / levels * largest;
  }
}

// Moments of vectors stay as they are, as those of small tensors do.
void adam_8bit(Parameter& parameter, const UpdateOf& of) {
  adam(parameter, of);
  if (parameter.shape.size() < 2) return;
  for (auto& values : parameter.first_moment.of_position)
    quantize(values, of.options.moment_block, 127);
  for (auto& values : parameter.second_moment.of_position)
    quantize(values, of.options.moment_block, 255);
}

// --- LAMB ----------------------------------------------------------------------------------------

// Of a tensor the whole; of experts' weights each expert's.
std::int64_t tensors_in(const Parameter& parameter) {
  return parameter.shape.size() > 2 ? parameter.shape.front() : 1;
}

// Squares of weights and directions, of each tensor two sums: a rank's own, then those of all ranks
// that hold parts.
Arrays squared_norms(const Parameter& parameter, const Arrays& directions, const UpdateOf& of) {
  const std::int64_t tensors = tensors_in(parameter);
  const std::int64_t size = std::accumulate(parameter.shape.begin(), parameter.shape.end(),
                                            std::int64_t{1}, std::multiplies()) /
                            tensors;
  const Slices slices(Layout{of.mesh, parameter.own}, parameter.shape);
  Arrays sums;
  for (std::int64_t p = 0; p < of.mesh.size(); ++p) {
    const auto position = static_cast<std::size_t>(p);
    auto& own = sums.of_position.emplace_back(static_cast<std::size_t>(2 * tensors));
    const auto indices = logical_indices(parameter.shape, slices.of(p));
    for (std::size_t i = 0; i < indices.size(); ++i) {
      const auto tensor = static_cast<std::size_t>(indices[i] / size);
      const double weight = parameter.kept.of_position[position][i];
      const double direction = directions.of_position[position][i];
      own[2 * tensor] += weight * weight;
      own[2 * tensor + 1] += direction * direction;
    }
  }
  std::vector<Axis> parts;
  for (const auto& axes : parameter.own.dims) parts.insert(parts.end(), axes.begin(), axes.end());
  std::ranges::sort(parts);
  Attribute from = replicated(1);
  from.partial = sums_over(parts);
  return convert(sums, {2 * tensors}, from, replicated(1), of.mesh);
}

// You et al., "Large Batch Optimization for Deep Learning", ICLR 2020, algorithm 2.
void lamb(Parameter& parameter, const UpdateOf& of) {
  Arrays directions = parameter.kept;
  each(parameter, [&](std::size_t p, std::size_t i) {
    directions.of_position[p][i] = adam_direction(parameter, of, p, i);
  });
  const Arrays norms = squared_norms(parameter, directions, of);
  const std::int64_t tensors = tensors_in(parameter);
  const Slices slices(Layout{of.mesh, parameter.own}, parameter.shape);
  const std::int64_t size = std::accumulate(parameter.shape.begin(), parameter.shape.end(),
                                            std::int64_t{1}, std::multiplies()) /
                            tensors;
  for (std::int64_t p = 0; p < of.mesh.size(); ++p) {
    const auto position = static_cast<std::size_t>(p);
    const auto indices = logical_indices(parameter.shape, slices.of(p));
    for (std::size_t i = 0; i < indices.size(); ++i) {
      const auto tensor = static_cast<std::size_t>(indices[i] / size);
      const auto& sums = norms.of_position[position];
      const double ratio = std::sqrt(sums[2 * tensor] / sums[2 * tensor + 1]);
      parameter.kept.of_position[position][i] -=
          of.options.adam.learning_rate * ratio * directions.of_position[position][i];
    }
  }
}

// --- Muon ----------------------------------------------------------------------------------------

using Matrix = std::vector<double>;  // row-major

Matrix product(const Matrix& a, const Matrix& b, std::size_t m, std::size_t n, std::size_t k) {
  Matrix c(m * n);
  for (std::size_t i = 0; i < m; ++i)
    for (std::size_t x = 0; x < k; ++x)
      for (std::size_t j = 0; j < n; ++j) c[i * n + j] += a[i * k + x] * b[x * n + j];
  return c;
}

Matrix transposed(const Matrix& a, std::size_t rows, std::size_t columns) {
  Matrix t(a.size());
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j) t[j * rows + i] = a[i * columns + j];
  return t;
}

// Jordan, "Muon", 2024: five iterations, in the shorter dimension.
Matrix orthogonal(Matrix x, std::size_t rows, std::size_t columns) {
  constexpr double kA = 3.4445;
  constexpr double kB = -4.7750;
  constexpr double kC = 2.0315;
  if (rows > columns)
    return transposed(orthogonal(transposed(x, rows, columns), columns, rows), columns, rows);
  const double norm = std::sqrt(std::inner_product(x.begin(), x.end(), x.begin(), 0.0));
  for (double& value : x) value /= norm + 1e-7;
  for (int iteration = 0; iteration < 5; ++iteration) {
    const Matrix a = product(x, transposed(x, rows, columns), rows, rows, columns);
    Matrix b = product(a, a, rows, rows, rows);
    for (std::size_t i = 0; i < b.size(); ++i) b[i] = kB * a[i] + kC * b[i];
    const Matrix more = product(b, x, rows, columns, rows);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = kA * x[i] + more[i];
  }
  return x;
}

// Every rank gathers the whole tensor and keeps its own part of what comes of it; AdamW for all but
// weights of layers.
void muon(Parameter& parameter, const UpdateOf& of) {
  if (!is_matrix(parameter)) return adam(parameter, of);
  const AdamOptions& options = of.options.adam;
  Arrays updates = parameter.kept;
  each(parameter, [&](std::size_t p, std::size_t i) {
    const double g = of.clip * parameter.gradients.of_position[p][i];
    double& m = parameter.first_moment.of_position[p][i];
    m = options.beta1 * m + g;
    updates.of_position[p][i] = g + options.beta1 * m;
  });
  const std::size_t dims = parameter.shape.size();
  Arrays whole = convert(updates, parameter.shape, parameter.own, replicated(dims), of.mesh);
  const auto rows = static_cast<std::size_t>(parameter.shape[dims - 2]);
  const auto columns = static_cast<std::size_t>(parameter.shape[dims - 1]);
  for (auto& values : whole.of_position) {
    for (std::size_t begin = 0; begin < values.size(); begin += rows * columns) {
      const auto first = values.begin() + static_cast<std::ptrdiff_t>(begin);
      const Matrix one(first, first + static_cast<std::ptrdiff_t>(rows * columns));
      std::ranges::copy(orthogonal(one, rows, columns), first);
    }
  }
  const Slices slices(Layout{of.mesh, parameter.own}, parameter.shape);
  for (std::int64_t p = 0; p < of.mesh.size(); ++p) {
    const auto position = static_cast<std::size_t>(p);
    const auto indices = logical_indices(parameter.shape, slices.of(p));
    for (std::size_t i = 0; i < indices.size(); ++i) {
      double& value = parameter.kept.of_position[position][i];
      const double update = whole.of_position[position][static_cast<std::size_t>(indices[i])];
      value -= options.learning_rate * (update + options.weight_decay * value);
    }
  }
}

struct Arithmetic {
  std::string_view rule;
  void (*update)(Parameter& parameter, const UpdateOf& of);
};
constexpr std::array kArithmetic{
    Arithmetic{"adam", adam}, Arithmetic{"adam-8bit", adam_8bit},
    Arithmetic{"lamb", lamb}, Arithmetic{"muon", muon},
    Arithmetic{"sgd", sgd},
};

}  // namespace

void update_by(std::string_view rule, Parameter& parameter, const UpdateOf& of) {
  const auto* const known = std::ranges::find(kArithmetic, rule, &Arithmetic::rule);
  FORESHARD_CHECK(known != kArithmetic.end());
  known->update(parameter, of);
}

}  // namespace foreshard::execute
