#include "base/perfetto/perfetto.h"

#include <rapidcheck.h>

#include "tests/base/perfetto/decoded.h"
#include "tests/test.h"

namespace foreshard::perfetto {
namespace {

class PerfettoTrace : public testing::Test {
 protected:
  std::string bytes;
  Writer writer{[this](std::string_view piece) {
    bytes += piece;
    return Status();
  }};
};

// A packet by hand: field 1 of the trace, 2 bytes of length; in it uuid 1 and process {pid 1, sort
// index 1, name "p"} in field 60, then field 10, the sequence.
TEST_F(PerfettoTrace, IsTheBytesOfItsFields) {
  writer.add_process("p");
  EXPECT_EQ(
      bytes,
      std::string("\x0a\x10\xe2\x03\x0b\x08\x01\x1a\x07\x08\x01\x18\x01\x32\x01p\x50\x01", 18));
}

TEST_F(PerfettoTrace, NestsSlicesAndNamesThemOnce) {
  const ProcessId gpu = writer.add_process("gpu");
  writer.add_track(gpu, "compute",
                   {{.start = 0, .finish = 10, .name = "forward", .category = "pass"},
                    {.start = 12, .finish = 12, .name = "nothing", .category = "pass"},
                    {.start = 10, .finish = 20, .name = "backward", .category = "pass"},
                    {.start = 0, .finish = 10, .name = "layer", .category = "pass"},
                    {.start = 1, .finish = 4, .name = "kernel", .category = "compute"},
                    {.start = 4, .finish = 10, .name = "kernel", .category = "compute"}});
  const auto tracks = decoded(bytes);
  const DecodedTrack& track = track_of(tracks, "gpu", "compute");
  std::vector<std::tuple<std::string, std::size_t, std::int64_t, std::int64_t>> found;
  for (const auto& slice : track.slices)
    found.emplace_back(slice.name, slice.depth, slice.start, slice.finish);
  EXPECT_THAT(found, ElementsAre(std::tuple("forward", 0, 0, 10), std::tuple("layer", 1, 0, 10),
                                 std::tuple("kernel", 2, 1, 4), std::tuple("kernel", 2, 4, 10),
                                 std::tuple("backward", 0, 10, 20)));
  EXPECT_EQ(track.slices[4].category, "pass");
  EXPECT_EQ(bytes.find("kernel", bytes.find("kernel") + 1), std::string::npos);
}

TEST_F(PerfettoTrace, KeepsArgumentsFlowsAndCounters) {
  const ProcessId gpu = writer.add_process("gpu");
  constexpr std::int64_t kMuch = std::numeric_limits<std::int64_t>::max();
  writer.add_track(gpu, "send",
                   {{.start = 5,
                     .finish = 6,
                     .name = "send",
                     .category = "pp_comm",
                     .arguments = {{"bytes", kMuch}, {"less", -1}, {"algorithm", "p2p"}},
                     .flow = std::numeric_limits<std::uint64_t>::max()}});
  const std::vector<Sample> samples{{0, 0.1}, {3, -2}, {3'000'000'000'000, 1e300}};
  writer.add_counter(gpu, "memory", Unit::kBytes, samples);
  writer.add_counter(gpu, "use", Unit::kNone, {});
  const auto tracks = decoded(bytes);
  const DecodedSlice& slice = track_of(tracks, "gpu", "send").slices.at(0);
  EXPECT_THAT(slice.arguments,
              ElementsAre(std::pair("algorithm", "p2p"), std::pair("bytes", std::to_string(kMuch)),
                          std::pair("less", "-1")));
  EXPECT_EQ(slice.flow, "18446744073709551615");
  const DecodedTrack& memory = track_of(tracks, "gpu", "memory");
  EXPECT_EQ(memory.unit, "UNIT_SIZE_BYTES");
  EXPECT_THAT(memory.counter, ElementsAre(std::pair(0, 0.1), std::pair(3, -2.0),
                                          std::pair(3'000'000'000'000, 1e300)));
  EXPECT_THAT(track_of(tracks, "gpu", "use").counter, testing::IsEmpty());
}

// Intervals cut in two again and again, in any order.
TEST_F(PerfettoTrace, NestsWhatIsNested) {
  EXPECT_TRUE(rc::check([this] {
    bytes.clear();
    std::vector<Slice> slices{{.start = 0, .finish = 1000, .name = "a", .category = "c"}};
    for (const int draw : *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 1 << 20))) {
      const Slice whole = slices[static_cast<std::size_t>(draw) % slices.size()];
      const auto middle = whole.start + draw % (whole.finish - whole.start + 1);
      const bool taken = std::ranges::any_of(slices, [&](const Slice& other) {
        return other.finish - other.start < whole.finish - whole.start && other.start < middle &&
               middle < other.finish;
      });
      if (taken) continue;
      for (const auto& [from, to] :
           {std::pair(whole.start, middle), std::pair(middle, whole.finish)})
        slices.push_back({.start = from, .finish = to, .name = "b", .category = "c"});
    }
    const auto length = [](const Slice& slice) { return slice.finish > slice.start; };
    writer.add_track(writer.add_process("p"), "t", slices);
    RC_ASSERT(std::ssize(decoded(bytes).at(0).slices) == std::ranges::count_if(slices, length));
    RC_ASSERT(!testing::Test::HasFailure());
  }));
}

TEST_F(PerfettoTrace, WritesNothingMoreAfterAnError) {
  int calls = 0;
  Writer full([&](std::string_view) {
    ++calls;
    return Status(Error{Error::Code::kIo, "disk full"});
  });
  full.add_track(full.add_process("p"), "t", {});
  EXPECT_EQ(message_of(full.status()), "disk full");
  EXPECT_EQ(calls, 1);
}

}  // namespace
}  // namespace foreshard::perfetto
