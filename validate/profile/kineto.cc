// Reads traces of PyTorch's profiler for `foreshard calibrate` (kineto.h). The file has
// microseconds; a Trace has seconds since its first event. A text that is not JSON, has no GPU
// events, or has an event without a proper time is refused with its place; kernels that were
// launched before the recording began are counted and left out; other arguments that are missing
// count as 0, -1 or "".
#include "validate/profile/kineto.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>
#include <utility>

#include "base/json.h"

#include "validate/profile/internal/json_text.h"

namespace foreshard::profile {
namespace {

using internal::text_in;
using Json = nlohmann::json;

// Thrown to get out of the parser's callback; Reader::run catches it.
struct Fault {
  std::string message;
};

// Calls that wait until the GPU has finished its work; calls that copy or allocate are among them.
constexpr std::array<std::string_view, 9> kWaits{"cudaDeviceSynchronize",
                                                 "cudaStreamSynchronize",
                                                 "cudaEventSynchronize",
                                                 "cuStreamSynchronize",
                                                 "cuCtxSynchronize",
                                                 "hipDeviceSynchronize",
                                                 "cudaMemcpy",
                                                 "cudaMalloc",
                                                 "cudaFree"};

enum class Category : std::uint8_t { kOther, kRange, kCall, kKernel, kCopy };

Category category_of(std::string word) {
  std::ranges::transform(word, word.begin(), [](unsigned char c) { return std::tolower(c); });
  if (word == "cpu_op" || word == "user_annotation" || word == "operator") return Category::kRange;
  if (word == "cuda_runtime" || word == "cuda_driver" || word == "runtime" || word == "driver")
    return Category::kCall;
  if (word == "kernel") return Category::kKernel;
  if (word == "gpu_memcpy" || word == "gpu_memset" || word == "memcpy" || word == "memset")
    return Category::kCopy;
  return Category::kOther;
}

std::int64_t integer_in(const Json& object, const char* key, std::int64_t otherwise) {
  const auto found = object.find(key);
  return found != object.end() && found->is_number_integer() ? found->get<std::int64_t>()
                                                             : otherwise;
}

class Reader {
 public:
  explicit Reader(std::string_view name) : name_(name) {}

  Result<Trace> run(std::string_view text) {
    const auto first = text.find_first_not_of(" \t\r\n");
    whole_ = first != std::string_view::npos && text[first] == '[';
    try {
      // Each event is dropped from the document as soon as it has been read.
      const auto rest = parsed_json<Json>(
          text,
          [this](int depth, std::string_view key, Json& value) { return take(depth, key, value); });
      if (!rest) return fault(rest.error().message);
      if (!rest->is_object() && !rest->is_array())
        return fault("is not a trace: neither an object nor an array of events");
    } catch (const Fault& bad) {
      return fault(bad.message);
    }
    if (trace_.kernels.empty())
      return fault("has no events of a GPU; record it with activities=[CPU, CUDA]");
    finish();
    return std::move(trace_);
  }

 private:
  Error fault(const std::string& why) const {
    return {Error::Code::kInvalidInput, name_ + ": " + why};
  }

  // A JsonFilter. Events are the elements of "traceEvents", or of the array that is the whole text.
  bool take(int depth, std::string_view key, const Json& value) {
    const bool events = whole_ ? depth == 1 : depth == 2 && key == "traceEvents";
    if (events && value.is_object()) {
      add(value);
      ++index_;
      return false;
    }
    if (whole_ || depth != 1) return true;
    if (key == "deviceProperties" && value.is_array() && !value.empty() && value[0].is_object())
      trace_.device = text_in(value[0], "name");
    if (key == "distributedInfo" && value.is_object()) {
      trace_.rank = integer_in(value, "rank", 0);
      trace_.ranks = integer_in(value, "world_size", 1);
    }
    return true;
  }

  [[noreturn]] void fault_at(const char* key, const std::string& why) const {
    throw Fault{(whole_ ? "[" : "traceEvents[") + std::to_string(index_) + "]." + key + ": " + why};
  }

  // A time, which the trace states in microseconds.
  Seconds time_in(const Json& event, const char* key) const {
    const auto found = event.find(key);
    if (found == event.end()) fault_at(key, "is missing from an event with a duration (\"X\")");
    double value = 0;
    if (found->is_number()) {
      value = found->get<double>();
    } else if (found->is_string()) {  // some writers quote numbers
      const auto text = found->get<std::string>();
      std::size_t end = 0;
      try {
        value = std::stod(text, &end);
      } catch (const std::exception&) {
        end = 0;
      }
      if (end == 0 || end != text.size()) fault_at(key, "\"" + text + "\" is not a number");
    } else {
      fault_at(key, "is not a number of microseconds");
    }
    constexpr double kMost = 1e18;  // 30,000 years, which no clock reaches
    if (!std::isfinite(value) || std::abs(value) > kMost)
      fault_at(key, "is not a time in microseconds");
    return value * 1_us;
  }

  void add(const Json& event) {
    if (text_in(event, "ph") != "X") return;
    const Category category = category_of(text_in(event, "cat"));
    if (category == Category::kOther) return;
    const Seconds start = time_in(event, "ts");
    const Seconds lasted = time_in(event, "dur");
    if (lasted < 0_s) fault_at("dur", "is negative");
    static const Json nothing = Json::object();
    const auto found = event.find("args");
    const Json& args = found != event.end() && found->is_object() ? *found : nothing;
    const std::int64_t correlation = integer_in(args, "correlation", -1);
    switch (category) {
      case Category::kRange: {
        HostRange range{.name = text_in(event, "name"),
                        .thread = thread_of(event),
                        .start = start,
                        .lasted = lasted,
                        .shapes = {},
                        .types = {}};
        add_inputs(args, range);
        trace_.ranges.push_back(std::move(range));
        return;
      }
      case Category::kCall: {
        const std::string name = text_in(event, "name");
        const bool waits = std::ranges::find(kWaits, name) != kWaits.end();
        if (correlation >= 0) call_of_[correlation] = trace_.calls.size();
        trace_.calls.push_back(
            {.thread = thread_of(event), .start = start, .lasted = lasted, .waits = waits});
        return;
      }
      case Category::kKernel:
      case Category::kCopy:
        correlation_.push_back(correlation);
        trace_.kernels.push_back({.name = text_in(event, "name"),
                                  .start = start,
                                  .lasted = lasted,
                                  .launched = start,
                                  .stream = integer_in(args, "stream", 0),
                                  .copy = category == Category::kCopy,
                                  .collective = collective_in(args)});
        return;
      case Category::kOther:
        return;
    }
  }

  // Threads are numbers or, in some versions of PyTorch, strings; a string gets a negative number.
  std::int64_t thread_of(const Json& event) {
    const auto found = event.find("tid");
    if (found == event.end()) return 0;
    if (found->is_number_integer()) return found->get<std::int64_t>();
    return threads_.try_emplace(found->dump(), -1 - static_cast<std::int64_t>(threads_.size()))
        .first->second;
  }

  static void add_inputs(const Json& args, HostRange& range) {
    const auto dims = args.find("Input Dims");
    const auto types = args.find("Input type");
    if (dims == args.end() || !dims->is_array()) return;
    for (std::size_t i = 0; i < dims->size(); ++i) {
      std::vector<std::int64_t> shape;
      for (const Json& extent : (*dims)[i])
        if (extent.is_number_integer()) shape.push_back(extent.get<std::int64_t>());
      range.shapes.push_back(std::move(shape));
      const bool typed = types != args.end() && types->is_array() && i < types->size();
      range.types.push_back(typed && (*types)[i].is_string() ? (*types)[i].get<std::string>() : "");
    }
  }

  static std::optional<TracedCollective> collective_in(const Json& args) {
    std::string name = text_in(args, "Collective name");
    if (name.empty()) return std::nullopt;
    return TracedCollective{.name = std::move(name),
                            .elements_in = integer_in(args, "In msg nelems", 0),
                            .elements_out = integer_in(args, "Out msg nelems", 0),
                            .ranks = integer_in(args, "Group size", 0),
                            .dtype = text_in(args, "dtype")};
  }

  void finish() {
    Seconds first = trace_.kernels.front().start;
    for (const auto& one : trace_.ranges) first = std::min(first, one.start);
    for (const auto& one : trace_.calls) first = std::min(first, one.start);
    for (const auto& one : trace_.kernels) first = std::min(first, one.start);
    for (auto& one : trace_.ranges) one.start = one.start - first;
    for (auto& one : trace_.calls) one.start = one.start - first;
    for (auto& one : trace_.kernels) one.start = one.start - first;

    std::ranges::stable_sort(trace_.ranges, [](const HostRange& a, const HostRange& b) {
      if (a.thread != b.thread) return a.thread < b.thread;
      return a.start != b.start ? a.start < b.start : a.lasted > b.lasted;
    });
    nest();
    leave_out_earlier();
    for (std::size_t k = 0; k < trace_.kernels.size(); ++k) {
      TracedKernel& kernel = trace_.kernels[k];
      kernel.launched = kernel.start;
      const auto found = call_of_.find(correlation_[k]);
      if (found == call_of_.end()) continue;
      const HostCall& call = trace_.calls[found->second];
      kernel.launched = call.start;
      kernel.range = around(call);
    }
    std::ranges::stable_sort(trace_.kernels, {}, &TracedKernel::start);
    std::ranges::stable_sort(trace_.calls, {}, &HostCall::start);
  }

  // Drops kernels that were launched before the recording began and ran after that.
  void leave_out_earlier() {
    const auto call_of = [&](std::size_t kernel) { return call_of_.find(correlation_[kernel]); };
    std::optional<Seconds> first;
    for (std::size_t k = 0; k < trace_.kernels.size(); ++k)
      if (const auto call = call_of(k); call != call_of_.end())
        first = std::min(first.value_or(trace_.calls[call->second].start),
                         trace_.calls[call->second].start);
    if (!first) return;
    std::size_t kept = 0;
    for (std::size_t k = 0; k < trace_.kernels.size(); ++k) {
      if (call_of(k) == call_of_.end() && trace_.kernels[k].start < *first) continue;
      if (kept != k) trace_.kernels[kept] = std::move(trace_.kernels[k]);
      correlation_[kept++] = correlation_[k];
    }
    trace_.earlier = static_cast<std::int64_t>(trace_.kernels.size() - kept);
    trace_.kernels.resize(kept);
  }

  // Both ends belong to the range: some versions of PyTorch round the times of ranges to
  // microseconds.
  static bool holds(const HostRange& range, std::int64_t thread, Seconds at) {
    return range.thread == thread && range.start <= at && at <= range.start + range.lasted;
  }

  // Finds the parent of each range by the middle of the range: its ends may be rounded to a point
  // outside the parent.
  void nest() {
    std::vector<std::int32_t> open;
    for (std::size_t i = 0; i < trace_.ranges.size(); ++i) {
      HostRange& range = trace_.ranges[i];
      const Seconds middle = range.start + 0.5 * range.lasted;
      while (!open.empty() &&
             !holds(trace_.ranges[static_cast<std::size_t>(open.back())], range.thread, middle))
        open.pop_back();
      range.parent = open.empty() ? -1 : open.back();
      open.push_back(static_cast<std::int32_t>(i));
    }
  }

  // The innermost range around a call, searched outwards from the last range that began before it.
  std::int32_t around(const HostCall& call) const {
    const auto after = std::ranges::upper_bound(
        trace_.ranges, std::pair(call.thread, call.start), {},
        [](const HostRange& range) { return std::pair(range.thread, range.start); });
    auto at = static_cast<std::int32_t>(after - trace_.ranges.begin()) - 1;
    while (at >= 0 && !holds(trace_.ranges[static_cast<std::size_t>(at)], call.thread, call.start))
      at = trace_.ranges[static_cast<std::size_t>(at)].parent;
    return at;
  }

  std::string name_;
  Trace trace_;
  bool whole_ = false;  // the text is the array of events
  std::size_t index_ = 0;
  std::vector<std::int64_t> correlation_;  // one per kernel, in the text's order
  std::unordered_map<std::int64_t, std::size_t>
      call_of_;  // correlation -> call; never iterated over
  std::map<std::string, std::int64_t> threads_;
};

}  // namespace

Seconds Trace::gpu_time() const {
  Seconds sum{};
  for (const TracedKernel& kernel : kernels) sum += kernel.lasted;
  return sum;
}

Result<Trace> read_trace(std::string_view text, std::string_view name) {
  return Reader(name).run(text);
}

}  // namespace foreshard::profile
