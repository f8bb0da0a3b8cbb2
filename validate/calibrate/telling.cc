#include "validate/calibrate/telling.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "sim/compute/operator_time.h"
#include "validate/calibrate/efficiency_numbers.h"

namespace foreshard::calibrate {
namespace {

constexpr std::int64_t kSmallest = 16;  // rows of 16 elements are aligned in any dtype
constexpr std::int64_t kLargest = 8192;
constexpr double kEnough = kTold / 2;    // deviation / spread
constexpr double kNearby = 0.5;          // largest change of a logarithm
constexpr double kLeastNarrowed = 0.01;  // fraction of the variance; a smaller gain is ignored
constexpr std::size_t kMostProducts = 32;

struct Proposal {
  Gemm gemm;
  std::vector<double> slopes;
};

std::vector<std::int64_t> extents() {
  std::vector<std::int64_t> result;
  for (std::int64_t extent = kSmallest; extent <= kLargest; extent *= 2) result.push_back(extent);
  return result;
}

}  // namespace

std::vector<Gemm> telling_products(const DeviceType& start, const std::vector<Gemm>& known,
                                   const std::function<bool(const Gemm&)>& fits) {
  if (known.empty()) return {};
  DeviceType device = start;
  const auto numbers =
      numbers_of(device, KernelFamily::kGemm, std::vector<Kernel>(known.begin(), known.end()));
  // Influence of each number on the time that is certain nearby: the lesser of the slopes above and
  // below its value, 0 where their signs differ.
  const auto slopes = [&](const Gemm& gemm) {
    const auto time = [&] { return std::log(model_time_of(gemm, device).total().in_base()); };
    const double now = time();
    std::vector<double> result;
    for (const LogNumber& number : numbers) {
      const double step = std::min(number.spread, kNearby);
      const auto slope = [&](double by) {
        number.set(std::exp(number.start() + by));
        return (time() - now) / by;
      };
      const double up = slope(step);
      const double down = slope(-step);
      number.set(number.value);
      result.push_back(up * down > 0 ? std::copysign(std::min(std::abs(up), std::abs(down)), up)
                                     : 0);
    }
    return result;
  };

  Knowledge knowledge(numbers);
  std::set<DType> dtypes;
  for (const Gemm& gemm : known) {
    knowledge.add(slopes(gemm));
    dtypes.insert(gemm.dtype);
  }
  std::vector<Proposal> candidates;
  for (const DType dtype : dtypes)
    for (const std::int64_t m : extents())
      for (const std::int64_t n : extents())
        for (const std::int64_t k : extents()) {
          const Gemm gemm{.m = m, .n = n, .k = k, .dtype = dtype};
          if (fits(gemm) && std::ranges::find(known, gemm) == known.end())
            candidates.push_back({gemm, slopes(gemm)});
        }

  std::vector<Gemm> result;
  std::set<std::size_t> hopeless;
  while (result.size() < kMostProducts) {
    std::optional<std::size_t> vaguest;
    const auto left = [&](std::size_t i) { return knowledge.deviation(i) / numbers[i].spread; };
    for (std::size_t i = 0; i < numbers.size(); ++i)
      if (!hopeless.contains(i) && left(i) > kEnough && (!vaguest || left(i) > left(*vaguest)))
        vaguest = i;
    if (!vaguest) break;
    const auto narrowed = [&](const Proposal& candidate) {
      return knowledge.narrowed_by(candidate.slopes, *vaguest);
    };
    const auto best = std::ranges::max_element(candidates, {}, narrowed);
    if (best == candidates.end() || narrowed(*best) < kLeastNarrowed) {
      hopeless.insert(*vaguest);
      continue;
    }
    knowledge.add(best->slopes);
    result.push_back(best->gemm);
    candidates.erase(best);
  }
  return result;
}

}  // namespace foreshard::calibrate
