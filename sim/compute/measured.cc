// Measured times of kernels beside the model's (measured.h): operator_time.cc asks here first.
// Times are seconds; a kernel that is not listed and has no measured kernel near it keeps the
// model's time.
#include "sim/compute/measured.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string>

#include "sim/compute/kernel_text.h"

namespace foreshard {
namespace {

constexpr double kModelsWeight = 0.25;

double octaves(std::int64_t extent) {
  return std::log2(static_cast<double>(std::max<std::int64_t>(extent, 1)));
}

// Binary logarithms of a kernel's extents: its position among kernels of its kind.
using Place = std::array<double, 4>;
Place place_of(const Gemm& g) {
  return {octaves(g.batch), octaves(g.m), octaves(g.n), octaves(g.k)};
}
Place place_of(const Attention& a) {
  return {octaves(a.batch * a.query_heads), octaves(a.query_length), octaves(a.key_length),
          octaves(a.head_dim)};
}
Place place_of(const Pass& p) {
  return {octaves(p.rows), octaves(p.columns), 0, 0};
}

bool alike(const Gemm& a, const Gemm& b) {
  return a.dtype == b.dtype && a.accumulate == b.accumulate && a.scales == b.scales &&
         a.apart == b.apart;
}
bool alike(const Attention& a, const Attention& b) {
  return a.dtype == b.dtype && a.direction == b.direction && a.causal == b.causal &&
         a.implementation == b.implementation && a.window == b.window && a.sample == b.sample;
}
bool alike(const Pass& a, const Pass& b) {
  return a.dtype == b.dtype && a.kind == b.kind && a.state_bytes == b.state_bytes &&
         a.launches == b.launches;
}

// Squared distance in octaves; nothing for kernels of different kinds.
std::optional<double> distance(const Kernel& a, const Kernel& b) {
  return std::visit(
      [&](const auto& first) -> std::optional<double> {
        const auto* second = std::get_if<std::decay_t<decltype(first)>>(&b);
        if (second == nullptr || !alike(first, *second)) return std::nullopt;
        const Place p = place_of(first);
        const Place q = place_of(*second);
        double sum = 0;
        for (std::size_t i = 0; i < p.size(); ++i) sum += (p[i] - q[i]) * (p[i] - q[i]);
        return sum;
      },
      a);
}

OperatorTime scaled(OperatorTime time, double factor) {
  time.compute = factor * time.compute;
  time.memory = factor * time.memory;
  time.floor = factor * time.floor;
  return time;
}

Duty duty_of(const MeasuredKernel& one) {
  return one.burst ? Duty::kBurst : Duty::kSustained;
}

}  // namespace

MeasuredKernels::MeasuredKernels(const DeviceType& device)
    : device_(&device), reach_(device.efficiency->reach) {
  for (const MeasuredKernel& one : device.measured) add(one);
  const DeviceEfficiency& efficiency = *device.efficiency;
  if (std::ranges::find(efficiency.measured_on, device.name) != efficiency.measured_on.end())
    for (const MeasuredKernel& one : efficiency.measured) add(one);
}

void MeasuredKernels::add(const MeasuredKernel& one) {
  const auto kernel = kernel_from(one.kernel);
  if (!kernel) return;
  const Seconds model = model_time_of(*kernel, *device_, duty_of(one)).total();
  const double residual = model > 0_s ? std::log(one.time / model) : 0;
  if (exact_.try_emplace(*kernel, known_.size()).second)
    known_.push_back({*kernel, one.time, duty_of(one), residual});
}

double MeasuredKernels::factor_near(const Kernel& kernel, Duty duty) const {
  double weights = kModelsWeight;
  double residuals = 0;
  for (const Known& known : known_) {
    if (known.duty != duty) continue;
    const auto squared = distance(kernel, known.kernel);
    if (!squared) continue;
    const double weight = std::exp(-*squared / (2 * reach_ * reach_));
    weights += weight;
    residuals += weight * known.residual;
  }
  return std::exp(residuals / weights);
}

OperatorTime MeasuredKernels::corrected(const Kernel& kernel, const OperatorTime& model,
                                        Duty duty) const {
  if (empty() || !(model.total() > 0_s)) return model;
  if (const auto own = exact_.find(kernel); own != exact_.end()) {
    const Known& known = known_[own->second];
    const double clocks = known.duty == duty
                              ? 1
                              : model.total() / model_time_of(kernel, *device_, known.duty).total();
    OperatorTime time = scaled(model, clocks * (known.time / model.total()));
    time.basis = Basis::kMeasured;
    return time;
  }
  if (!(reach_ > 0)) return model;
  const double factor = factor_near(kernel, duty);
  if (factor == 1) return model;
  OperatorTime time = scaled(model, factor);
  time.basis = Basis::kNeighbours;
  time.correction = factor;
  return time;
}

// The implementation that an entry under attention_of is about: "cudnn" for "cudnn-fp8", which
// holds its rates in fp8.
static std::string implementation_of(const std::string& entry) {
  constexpr std::string_view kNarrow = "-fp8";
  return entry.ends_with(kNarrow) ? entry.substr(0, entry.size() - kNarrow.size()) : entry;
}

std::string fault_in(const DeviceEfficiency& efficiency) {
  for (const auto& [name, rates] : efficiency.attention_of) {
    const auto known = find_attention(implementation_of(name));
    if (!known || *known == AttentionImplementation::kFused ||
        *known == AttentionImplementation::kUnfused)
      return "'" + name +
             "' under attention_of is no implementation of fused attention; there are "
             "triton-flash-1, flash-2, flash-3, cudnn";
  }
  std::set<std::string> seen;
  for (const MeasuredKernel& one : efficiency.measured) {
    if (!kernel_from(one.kernel))
      return "'" + one.kernel +
             "' is not a kernel; write it as in reports: gemm 512x512x2048 fp32, attention_fwd "
             "2x8/8 seq 256x256 dim 64 causal fp32, gelu_fwd 512x2048 fp32";
    if (!seen.insert(one.kernel).second) return "'" + one.kernel + "' is measured twice";
  }
  return {};
}

}  // namespace foreshard
