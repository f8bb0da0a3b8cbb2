#include "tests/base/perfetto/decoded.h"

#include <algorithm>
#include <fstream>
#include <google/protobuf/descriptor.pb.h>
#include <google/protobuf/dynamic_message.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace foreshard::perfetto {
namespace {

using Json = nlohmann::json;
namespace protobuf = google::protobuf;

// The packets as JSON, in which numbers of 64 bits are strings.
Json packets_of(std::string_view bytes) {
  std::ifstream stream(FORESHARD_SOURCE_DIR "/tests/base/perfetto/trace.textproto");
  protobuf::io::IstreamInputStream input(&stream);
  protobuf::FileDescriptorProto schema;
  EXPECT_TRUE(protobuf::TextFormat::Parse(&input, &schema));
  protobuf::DescriptorPool pool;
  const auto* file = pool.BuildFile(schema);
  if (file == nullptr) throw std::runtime_error("trace.textproto is no schema");
  protobuf::DynamicMessageFactory factory;
  const std::unique_ptr<protobuf::Message> trace(
      factory.GetPrototype(file->FindMessageTypeByName("Trace"))->New());
  EXPECT_TRUE(trace->ParseFromArray(bytes.data(), static_cast<int>(bytes.size())));
  trace->DiscardUnknownFields();
  EXPECT_EQ(trace->ByteSizeLong(), bytes.size()) << "fields that the schema lacks";
  std::string text;
  protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  EXPECT_TRUE(protobuf::util::MessageToJsonString(*trace, &text, options).ok());
  return Json::parse(text).value("packet", Json::array());
}

std::int64_t number(const Json& json) {
  return json.is_string() ? std::stoll(json.get<std::string>()) : json.get<std::int64_t>();
}

// What the packets of a sequence refer to.
struct State {
  std::map<std::string, std::map<std::string, std::string>> tables;
  std::string track;      // the default one
  std::int64_t time = 0;  // of the last packet, on the sequence's own clock
  std::vector<std::size_t> open;

  void clear(const Json& packet) {
    *this = {};
    const Json& defaults = packet.at("trace_packet_defaults");
    track = defaults.at("track_event_defaults").at("track_uuid");
    const Json& clock = packet.at("clock_snapshot").at("clocks").at(1);
    EXPECT_EQ(clock.at("clock_id"), defaults.at("timestamp_clock_id"));
    EXPECT_GE(clock.at("clock_id"), 64);
    EXPECT_TRUE(clock.at("is_incremental"));
    EXPECT_EQ(packet.at("clock_snapshot").at("clocks").at(0).at("clock_id"), 6);
  }
  void learn(const Json& interned) {
    for (const auto& [table, entries] : interned.items())
      for (const Json& entry : entries)
        EXPECT_TRUE(tables[table].emplace(entry.at("iid"), entry.at("text")).second);
  }
  const std::string& text(const std::string& table, const Json& id) const {
    return tables.at(table).at(id.get<std::string>());
  }
};

class Decoder {
 public:
  std::vector<DecodedTrack> run(std::string_view bytes) {
    for (const Json& packet : packets_of(bytes)) take(packet);
    for (const auto& [id, state] : states_) EXPECT_TRUE(state.open.empty()) << "an open slice";
    return std::move(tracks_);
  }

 private:
  void take(const Json& packet) {
    State& state = states_[packet.at("trusted_packet_sequence_id")];
    const int flags = packet.value("sequence_flags", 0);
    if (flags == 1) state.clear(packet);
    if (packet.contains("track_descriptor")) describe(packet["track_descriptor"]);
    if (packet.contains("interned_data")) state.learn(packet["interned_data"]);
    if (!packet.contains("track_event")) return;
    EXPECT_EQ(flags, 2);
    state.time += number(packet.at("timestamp"));
    event(packet["track_event"], state, tracks_.at(index_.at(state.track)));
  }

  void describe(const Json& descriptor) {
    const std::string id = descriptor.at("uuid");
    if (descriptor.contains("process")) {
      EXPECT_EQ(number(descriptor["process"].at("pid")), std::stoll(id));
      processes_[id] = descriptor["process"].at("process_name");
      return;
    }
    index_[id] = tracks_.size();
    DecodedTrack& track = tracks_.emplace_back();
    track.process = processes_.at(descriptor.at("parent_uuid"));
    if (descriptor.contains("thread")) {
      track.name = descriptor["thread"].at("thread_name");
      EXPECT_EQ(std::to_string(number(descriptor["thread"].at("pid"))),
                descriptor.at("parent_uuid"));
    } else {
      track.name = descriptor.at("name");
      track.unit = descriptor.at("counter").value("unit", "");
    }
  }

  static void event(const Json& event, State& state, DecodedTrack& track) {
    const std::string type = event.at("type");
    if (type == "TYPE_COUNTER") {
      track.counter.emplace_back(state.time, event.at("double_counter_value").get<double>());
    } else if (type == "TYPE_SLICE_END") {
      ASSERT_FALSE(state.open.empty());
      DecodedSlice& slice = track.slices[state.open.back()];
      EXPECT_GT(state.time, slice.start);
      slice.finish = state.time;
      state.open.pop_back();
    } else {
      DecodedSlice slice{.name = state.text("event_names", event.at("name_iid")),
                         .category = state.text("event_categories", event["category_iids"].at(0)),
                         .start = state.time,
                         .finish = -1,
                         .depth = state.open.size(),
                         .arguments = {},
                         .flow = {}};
      for (const Json& one : event.value("debug_annotations", Json::array()))
        slice.arguments[state.text("debug_annotation_names", one.at("name_iid"))] =
            one.contains("int_value")
                ? one["int_value"].get<std::string>()
                : state.text("debug_annotation_string_values", one.at("string_value_iid"));
      if (event.contains("flow_ids")) slice.flow = event["flow_ids"].at(0);
      state.open.push_back(track.slices.size());
      track.slices.push_back(std::move(slice));
    }
  }

  std::map<int, State> states_;
  std::map<std::string, std::string> processes_;
  std::map<std::string, std::size_t> index_;
  std::vector<DecodedTrack> tracks_;
};

// Begins and ends that are balanced say nothing of a slice that ends where it should not: it ends
// the one within. So the times of both are compared.
void expect_nested(const DecodedTrack& track) {
  std::vector<const DecodedSlice*> around;
  for (const DecodedSlice& slice : track.slices) {
    around.resize(slice.depth);
    if (!around.empty()) {
      EXPECT_GE(slice.start, around.back()->start) << slice.name;
      EXPECT_LE(slice.finish, around.back()->finish) << slice.name;
    }
    around.push_back(&slice);
  }
  std::map<std::size_t, std::int64_t> free_from;  // depth -> end of the last slice
  for (const DecodedSlice& slice : track.slices) {
    EXPECT_GE(slice.start, free_from[slice.depth]) << slice.name;
    free_from[slice.depth] = slice.finish;
  }
}

}  // namespace

std::vector<DecodedTrack> decoded(std::string_view bytes) {
  auto tracks = Decoder().run(bytes);
  for (const DecodedTrack& track : tracks) expect_nested(track);
  return tracks;
}

const DecodedTrack& track_of(const std::vector<DecodedTrack>& tracks, std::string_view process,
                             std::string_view name) {
  const auto is_it = [&](const DecodedTrack& track) {
    return track.process == process && track.name == name;
  };
  EXPECT_EQ(std::ranges::count_if(tracks, is_it), 1) << process << ", " << name;
  return *std::ranges::find_if(tracks, is_it);
}

}  // namespace foreshard::perfetto
