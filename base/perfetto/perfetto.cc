// Writes traces of Perfetto (perfetto.h): packets of protobuf, whose fields have the numbers of the
// files named at each message.
#include "base/perfetto/perfetto.h"

#include <algorithm>
#include <array>
#include <bit>
#include <google/protobuf/io/coded_stream.h>
#include <limits>
#include <map>
#include <string>

namespace foreshard::perfetto {
namespace {

// Wire types of protobuf. Source: protobuf.dev/programming-guides/encoding.
enum Wire : std::uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2 };

// A message of protobuf.
class Message {
 public:
  Message& number(std::uint32_t field, std::uint64_t value) {
    tag(field, kVarint);
    return varint(value);
  }
  Message& fixed(std::uint32_t field, std::uint64_t value) {
    tag(field, kFixed64);
    std::array<std::uint8_t, sizeof value> bytes{};
    google::protobuf::io::CodedOutputStream::WriteLittleEndian64ToArray(value, bytes.data());
    return append(bytes.data(), bytes.size());
  }
  Message& text(std::uint32_t field, std::string_view bytes) {
    tag(field, kBytes).varint(bytes.size());
    bytes_ += bytes;
    return *this;
  }
  Message& message(std::uint32_t field, const Message& inner) { return text(field, inner.bytes_); }

  const std::string& bytes() const { return bytes_; }

 private:
  Message& tag(std::uint32_t field, Wire wire) { return varint(field << 3U | wire); }
  Message& varint(std::uint64_t value) {
    constexpr std::size_t kLongest = 10;
    std::array<std::uint8_t, kLongest> bytes{};
    const auto* end =
        google::protobuf::io::CodedOutputStream::WriteVarint64ToArray(value, bytes.data());
    return append(bytes.data(), static_cast<std::size_t>(end - bytes.data()));
  }
  Message& append(const std::uint8_t* bytes, std::size_t count) {
    bytes_.append(reinterpret_cast<const char*>(bytes), count);
    return *this;
  }

  std::string bytes_;
};

// trace.proto
constexpr std::uint32_t kPacketOfTrace = 1;

// trace_packet.proto
namespace packet {
constexpr std::uint32_t kClockSnapshot = 6;
constexpr std::uint32_t kTimestamp = 8;
constexpr std::uint32_t kSequenceId = 10;
constexpr std::uint32_t kTrackEvent = 11;
constexpr std::uint32_t kInternedData = 12;
constexpr std::uint32_t kSequenceFlags = 13;
constexpr std::uint32_t kDefaults = 59;
constexpr std::uint32_t kTrackDescriptor = 60;
constexpr std::uint64_t kStateCleared = 1;
constexpr std::uint64_t kNeedsState = 2;
}  // namespace packet

// track_event/track_event.proto
namespace event {
constexpr std::uint32_t kCategoryId = 3;
constexpr std::uint32_t kDebugAnnotation = 4;
constexpr std::uint32_t kType = 9;
constexpr std::uint32_t kNameId = 10;
constexpr std::uint32_t kTrackUuid = 11;
constexpr std::uint32_t kDoubleCounterValue = 44;
constexpr std::uint32_t kFlowId = 47;
enum Type : std::uint64_t { kBegin = 1, kEnd = 2, kCounter = 4 };
}  // namespace event

// interned_data/interned_data.proto
enum Table : std::uint32_t {
  kCategories = 1,
  kEventNames = 2,
  kAnnotationNames = 3,
  kAnnotationTexts = 29
};

// clock_snapshot.proto: a clock of the sequence, whose times are differences.
constexpr std::uint64_t kBootTime = 6;
constexpr std::uint64_t kOwnClock = 64;

// What both ends of a process and a track say of themselves: process_descriptor.proto and
// thread_descriptor.proto have the same first and third field.
constexpr std::uint32_t kPid = 1;
constexpr std::uint32_t kTid = 2;
constexpr std::uint32_t kSortIndex = 3;
constexpr std::uint32_t kThreadName = 5;
constexpr std::uint32_t kProcessName = 6;

std::uint64_t as_number(std::int32_t id) {
  return static_cast<std::uint64_t>(id);
}

// The packets of one track. The first one sets what holds for all of them.
class Sequence {
 public:
  Sequence(const Writer::Append& append, Status& status, std::int32_t id)
      : append_(append), status_(status), id_(as_number(id)) {}
  Sequence(const Sequence&) = delete;
  Sequence& operator=(const Sequence&) = delete;
  ~Sequence() { flush(); }

  // track_event/track_descriptor.proto
  void describe(const Message& descriptor) {
    write(Message().message(packet::kTrackDescriptor, descriptor), 0);
  }

  // trace_packet_defaults.proto, clock_snapshot.proto
  void begin() {
    const Message clocks =
        Message()
            .message(1, Message().number(1, kBootTime).number(2, 0))
            .message(1, Message().number(1, kOwnClock).number(2, 0).number(3, 1));
    constexpr std::uint32_t kClockId = 58;
    const Message defaults =
        Message()
            .number(kClockId, kOwnClock)
            .message(packet::kTrackEvent, Message().number(event::kTrackUuid, id_));
    write(Message().message(packet::kClockSnapshot, clocks).message(packet::kDefaults, defaults),
          packet::kStateCleared);
  }

  void begin_slice(const Slice& slice) {
    Message fields = of_type(event::kBegin);
    fields.number(event::kCategoryId, id_of(kCategories, slice.category))
        .number(event::kNameId, id_of(kEventNames, slice.name));
    for (const auto& [name, value] : slice.arguments)
      fields.message(event::kDebugAnnotation, annotation(name, value));
    if (slice.flow) fields.fixed(event::kFlowId, *slice.flow);
    add(slice.start, fields);
  }
  void end_slice(std::int64_t time) { add(time, of_type(event::kEnd)); }
  void count(const Sample& sample) {
    add(sample.time,
        of_type(event::kCounter)
            .fixed(event::kDoubleCounterValue, std::bit_cast<std::uint64_t>(sample.value)));
  }

 private:
  static Message of_type(event::Type type) { return Message().number(event::kType, type); }

  // track_event/debug_annotation.proto
  Message annotation(std::string_view name,
                     const std::variant<std::int64_t, std::string_view>& value) {
    constexpr std::uint32_t kNameId = 1;
    constexpr std::uint32_t kInteger = 4;
    constexpr std::uint32_t kTextId = 17;
    Message message;
    message.number(kNameId, id_of(kAnnotationNames, name));
    if (const auto* text = std::get_if<std::string_view>(&value))
      return message.number(kTextId, id_of(kAnnotationTexts, *text));
    return message.number(kInteger, static_cast<std::uint64_t>(std::get<std::int64_t>(value)));
  }

  // The number of a text in a table of the sequence; new texts go out with the next packet.
  std::uint64_t id_of(Table table, std::string_view text) {
    auto& ids = interned_[table];
    const auto [found, is_new] = ids.try_emplace(text, ids.size() + 1);
    if (is_new) fresh_.message(table, Message().number(1, found->second).text(2, text));
    return found->second;
  }

  void add(std::int64_t time, const Message& track_event) {
    Message whole;
    whole.number(packet::kTimestamp, static_cast<std::uint64_t>(time - now_));
    now_ = time;
    if (!fresh_.bytes().empty())
      whole.message(packet::kInternedData, std::exchange(fresh_, Message()));
    write(whole.message(packet::kTrackEvent, track_event), packet::kNeedsState);
  }

  void write(Message whole, std::uint64_t flags) {
    whole.number(packet::kSequenceId, id_);
    if (flags != 0) whole.number(packet::kSequenceFlags, flags);
    out_.message(kPacketOfTrace, whole);
    constexpr std::size_t kPiece = 1 << 20;
    if (out_.bytes().size() > kPiece) flush();
  }

  void flush() {
    if (status_.ok()) status_ = append_(out_.bytes());
    out_ = {};
  }

  const Writer::Append& append_;
  Status& status_;
  std::uint64_t id_;
  std::int64_t now_ = 0;
  std::map<Table, std::map<std::string_view, std::uint64_t>> interned_;
  Message fresh_;
  Message out_;
};

// track_event/track_descriptor.proto
constexpr std::uint32_t kUuid = 1;
constexpr std::uint32_t kName = 2;
constexpr std::uint32_t kProcess = 3;
constexpr std::uint32_t kThread = 4;
constexpr std::uint32_t kParentUuid = 5;
constexpr std::uint32_t kCounter = 8;

}  // namespace

ProcessId Writer::add_process(std::string_view name) {
  const std::uint64_t id = as_number(++last_id_);
  const Message process =
      Message().number(kPid, id).number(kSortIndex, id).text(kProcessName, name);
  Sequence(append_, status_, last_id_)
      .describe(Message().number(kUuid, id).message(kProcess, process));
  return ProcessId(last_id_);
}

void Writer::add_track(ProcessId process, std::string_view name, std::vector<Slice> slices) {
  std::erase_if(slices, [](const Slice& slice) { return slice.finish <= slice.start; });
  std::ranges::stable_sort(slices, {}, [](const Slice& slice) {
    return std::pair(slice.start, -slice.finish);  // the outer one first
  });
  const std::uint64_t id = as_number(++last_id_);
  const std::uint64_t parent = as_number(process.value());
  Sequence sequence(append_, status_, last_id_);
  sequence.begin();
  sequence.describe(Message()
                        .number(kUuid, id)
                        .number(kParentUuid, parent)
                        .message(kThread, Message()
                                              .number(kPid, parent)
                                              .number(kTid, id)
                                              .number(kSortIndex, id)
                                              .text(kThreadName, name)));
  std::vector<std::int64_t> open;  // ends of the slices around the next one
  const auto close_until = [&](std::int64_t time) {
    for (; !open.empty() && open.back() <= time; open.pop_back()) sequence.end_slice(open.back());
  };
  for (const Slice& slice : slices) {
    close_until(slice.start);
    sequence.begin_slice(slice);
    open.push_back(slice.finish);
  }
  close_until(std::numeric_limits<std::int64_t>::max());
}

void Writer::add_counter(ProcessId process, std::string_view name, Unit unit,
                         std::span<const Sample> samples) {
  const std::uint64_t id = as_number(++last_id_);
  // track_event/counter_descriptor.proto
  constexpr std::uint32_t kUnitField = 3;
  constexpr std::uint64_t kSizeInBytes = 3;
  Message counter;
  if (unit == Unit::kBytes) counter.number(kUnitField, kSizeInBytes);
  Sequence sequence(append_, status_, last_id_);
  sequence.begin();
  sequence.describe(Message()
                        .number(kUuid, id)
                        .text(kName, name)
                        .number(kParentUuid, as_number(process.value()))
                        .message(kCounter, counter));
  for (const Sample& sample : samples) sequence.count(sample);
}

}  // namespace foreshard::perfetto
