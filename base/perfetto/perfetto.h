/// \file
/// Traces in Perfetto's own format, protobuf, which ui.perfetto.dev and trace_processor open:
/// slices that nest, flows between them, counters. Source: protos/perfetto/trace/ of
/// github.com/google/perfetto; tests/base/perfetto/trace.textproto has the fields that are written.
///
///     perfetto::Writer writer(append);
///     const auto gpu = writer.add_process("stage 0");
///     writer.add_track(gpu, "compute", {{.start = 0, .finish = 9, .name = "forward"},
///                                       {.start = 0, .finish = 4, .name = "layer"}});
///     status = writer.status();
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/ids.h"
#include "base/result.h"

namespace foreshard::perfetto {

/// What is told of a slice beside its name.
using Argument = std::pair<std::string_view, std::variant<std::int64_t, std::string_view>>;

struct Slice {
  std::int64_t start = 0;  ///< Nanoseconds.
  std::int64_t finish = 0;
  std::string_view name{};
  std::string_view category{};
  std::vector<Argument> arguments{};
  /// Slices of one flow are joined by arrows, from the earlier one to the later one. If they start
  /// together, the arrow begins at the one whose track was added first.
  std::optional<std::uint64_t> flow{};
};

/// A counter has `value` from `time` on.
struct Sample {
  std::int64_t time = 0;  ///< Nanoseconds.
  double value = 0;
};

enum class Unit : std::uint8_t { kNone, kBytes };

using ProcessId = Id<struct ProcessTag>;

/// Writes tracks one after another. Each is a sequence of packets of its own, with times as
/// differences and with a table of its names, so that a slice takes about 30 bytes.
class Writer {
 public:
  using Append = std::function<Status(std::string_view)>;
  explicit Writer(Append append) : append_(std::move(append)) {}

  /// A heading in the viewer, under which tracks stand.
  ProcessId add_process(std::string_view name);
  /// Slices without length are left out.
  /// \pre Two slices are apart, or one contains the other: of two with the same times, the one that
  ///     comes first in `slices`.
  void add_track(ProcessId process, std::string_view name, std::vector<Slice> slices);
  /// \pre `samples` are sorted by time.
  void add_counter(ProcessId process, std::string_view name, Unit unit,
                   std::span<const Sample> samples);
  /// The first error of `append`, after which nothing more is written.
  const Status& status() const { return status_; }

 private:
  Append append_;
  Status status_;
  std::int32_t last_id_ = 0;  // of processes and tracks together
};

}  // namespace foreshard::perfetto
