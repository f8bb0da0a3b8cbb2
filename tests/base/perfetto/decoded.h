// Traces of Perfetto, read by its public schema (trace.textproto) as its trace_processor reads
// them.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace foreshard::perfetto {

struct DecodedSlice {
  std::string name;
  std::string category;
  std::int64_t start = 0;  // nanoseconds
  std::int64_t finish = -1;
  std::size_t depth = 0;  // slices around it
  std::map<std::string, std::string> arguments;
  std::optional<std::string> flow;
};

struct DecodedTrack {
  std::string process;
  std::string name;
  std::vector<DecodedSlice> slices{};  // in the order of their begins
  std::vector<std::pair<std::int64_t, double>> counter{};
  std::string unit{};
};

// Tracks in the order of the file. Fails the test where the bytes are no trace, have fields that
// the schema lacks, refer to what is not defined, or where slices of a track overlap.
std::vector<DecodedTrack> decoded(std::string_view bytes);

// The track of that name; fails the test where there is none or several.
const DecodedTrack& track_of(const std::vector<DecodedTrack>& tracks, std::string_view process,
                             std::string_view name);

}  // namespace foreshard::perfetto
