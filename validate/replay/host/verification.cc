// The --verify of the host's replay, which host_executor.cc calls around every communication: fills
// buffers with known numbers (pattern.h) before it, and checks afterwards what was received. Sizes
// are elements of the communication's type; a tolerance is a relative error. At most
// kMostFaults faults are named, one in each block of elements.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "strategies/program/ir/program.h"
#include "validate/replay/host/collective.h"
#include "validate/replay/number.h"
#include "validate/replay/pattern.h"

namespace foreshard::replay::host {
namespace {

using program::CollectiveKind;

constexpr std::size_t kBlock = 4096;  // elements checked at a time

const program::Communication& communication_of(const RankPlan& plan, std::size_t instance) {
  return std::get<program::Communication>(plan.task(instance).body);
}

bool sums(CollectiveKind kind) {
  return kind == CollectiveKind::kAllReduce || kind == CollectiveKind::kReduceScatter;
}

// Largest relative error of one rounding; 0 for types in which the pattern's sums are exact.
double rounding_of(DType dtype) {
  switch (dtype) {
    case DType::kFp16:
      return 0x1p-11;
    case DType::kBf16:
      return 0x1p-8;
    case DType::kFp8:
      return 0x1p-4;
    default:
      return 0.0;
  }
}

// Whether `got` is the number that must arrive. \pre wanted >= 0, as all numbers of the pattern
// are.
template <class T>
bool is_right(T got, int wanted, double tolerance) {
  if constexpr (std::is_integral_v<T>) {
    return got == static_cast<T>(wanted);  // sums wrap around as the type does
  } else {
    // Sums beyond a type's largest number become that number (number.h).
    const double most = std::is_same_v<T, Fp8>    ? 448.0
                        : std::is_same_v<T, Fp16> ? 65504.0
                                                  : std::numeric_limits<float>::max();
    const double bounded = std::min(static_cast<double>(wanted), most);
    return std::fabs(static_cast<double>(to_float(got)) - bounded) <= tolerance * bounded;
  }
}

}  // namespace

void write_given(const RankPlan& plan, std::size_t instance, std::span<std::byte> send,
                 std::span<std::byte> receive) {
  const program::Communication& communication = communication_of(plan, instance);
  const Elements elements = elements_of(plan, instance);
  const Operation& operation = plan.operations[instance];
  const std::int32_t me = plan.communicators[static_cast<std::size_t>(operation.communicator)].me;
  with_storage(communication.dtype, [&](auto storage) {
    using T = decltype(storage);
    std::span<std::byte> into = send;
    // Three kinds work in place, in `receive` (start_collective).
    if (communication.kind == CollectiveKind::kAllReduce) into = receive;
    if (communication.kind == CollectiveKind::kAllGather) {
      const auto bytes = static_cast<std::size_t>(elements.send) * sizeof(T);
      into = receive.subspan(static_cast<std::size_t>(me) * bytes, bytes);
    }
    if (communication.kind == CollectiveKind::kBroadcast) {
      if (operation.root != me) return;
      into = receive;
    }
    auto* out = reinterpret_cast<T*>(into.data());
    std::vector<int> values(kBlock);
    for (std::size_t first = 0; first < static_cast<std::size_t>(elements.send); first += kBlock) {
      const std::size_t count = std::min(kBlock, static_cast<std::size_t>(elements.send) - first);
      given(plan, instance, static_cast<std::int64_t>(first), std::span(values).first(count));
      for (std::size_t i = 0; i < count; ++i) store(static_cast<float>(values[i]), out[first + i]);
    }
  });
}

void check_expected(const RankPlan& plan, std::size_t instance, std::span<const std::byte> receive,
                    Verification& verification) {
  const program::Task& task = plan.task(instance);
  const program::Communication& communication = communication_of(plan, instance);
  const Operation& operation = plan.operations[instance];
  const auto elements = static_cast<std::size_t>(elements_of(plan, instance).receive);
  const auto members = static_cast<double>(
      plan.communicators[static_cast<std::size_t>(operation.communicator)].members.size());
  const double tolerance =
      sums(communication.kind) ? rounding_of(communication.dtype) * (members - 1) : 0.0;
  ++verification.operations;
  verification.elements += static_cast<std::int64_t>(elements);
  with_storage(communication.dtype, [&](auto storage) {
    using T = decltype(storage);
    const auto* got = reinterpret_cast<const T*>(receive.data());
    std::vector<int> values(kBlock);
    for (std::size_t first = 0; first < elements; first += kBlock) {
      const std::size_t count = std::min(kBlock, elements - first);
      expected(plan, instance, static_cast<std::int64_t>(first), std::span(values).first(count));
      for (std::size_t i = 0; i < count; ++i) {
        if (is_right(got[first + i], values[i], tolerance)) continue;
        if (verification.faults.size() >= kMostFaults) return;
        std::string shown = std::to_string(to_float(got[first + i]));
        shown.erase(shown.find_last_not_of('0') + 1);
        if (shown.ends_with('.')) shown.pop_back();
        verification.faults.push_back(std::string(program::name_of(communication.kind)) + " " +
                                      task.name + " #" + std::to_string(operation.ordinal) +
                                      " on rank " + std::to_string(plan.rank) + ": element " +
                                      std::to_string(first + i) + " is " + shown + ", not " +
                                      std::to_string(values[i]));
        break;  // one fault per block is enough
      }
    }
  });
}

}  // namespace foreshard::replay::host
