#include <cmath>
#include <map>
#include <nlohmann/json.hpp>

#include "strategies/program/ir/group.h"
#include "strategies/program/ir/json.h"
#include "strategies/program/ir/program.h"

namespace foreshard::program {
namespace {

using Json = nlohmann::ordered_json;

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Writes whole numbers without ".0": shorter, and as people write them.
Json number(double value) {
  constexpr double kExact = 0x1p53;
  if (std::abs(value) < kExact && value == std::floor(value))
    return static_cast<std::int64_t>(value);
  return value;
}

std::string_view name_of(Direction direction) {
  return direction == Direction::kForward ? "forward" : "backward";
}

// The distinct groups of a program, in the order of first use.
class GroupTable {
 public:
  explicit GroupTable(const Program& program) {
    for (const Block& block : program.blocks)
      for (const Task& task : block.tasks)
        if (const auto* communication = std::get_if<Communication>(&task.body))
          if (index_.emplace(communication->group, groups_.size()).second)
            groups_.push_back(&communication->group);
  }
  std::size_t index_of(const Group& group) const { return index_.at(group); }
  const std::vector<const Group*>& groups() const { return groups_; }

 private:
  std::map<Group, std::size_t> index_;
  std::vector<const Group*> groups_;
};

Json json_of(const AxisGroup& group) {
  Json json{{"axes", group.axes}};
  if (!group.coordinates.empty()) json["coordinates"] = group.coordinates;
  return json;
}
Json json_of(const AxisPeer& peer) {
  return {{"axis", peer.axis}, {"coordinate", peer.coordinate}};
}
Json json_of(const RankGroups& groups) {
  Json lists = Json::array();
  for (const auto& list : groups.groups) lists.push_back(write_ranges(list));
  return {{"ranks", std::move(lists)}};
}

Json json_of(const Gemm& gemm) {
  Json json{{"batch", gemm.batch},
            {"m", gemm.m},
            {"n", gemm.n},
            {"k", gemm.k},
            {"dtype", foreshard::name_of(gemm.dtype)},
            {"accumulate", gemm.accumulate}};
  if (!gemm.matrix_units) json["matrix_units"] = false;
  if (gemm.scales != Scales::kTensor) json["scales"] = foreshard::name_of(gemm.scales);
  if (gemm.apart) json["apart"] = true;
  return json;
}
Json json_of(const Attention& attention) {
  Json json{{"batch", attention.batch},
            {"query_heads", attention.query_heads},
            {"kv_heads", attention.kv_heads},
            {"query_length", attention.query_length},
            {"key_length", attention.key_length},
            {"head_dim", attention.head_dim},
            {"causal", attention.causal},
            {"direction", name_of(attention.direction)},
            {"dtype", foreshard::name_of(attention.dtype)}};
  if (attention.value_dim > 0) json["value_dim"] = attention.value_dim;
  if (attention.window > 0) json["window"] = attention.window;
  if (attention.sample > 0) json["sample"] = attention.sample;
  if (attention.implementation != AttentionImplementation::kFused)
    json["implementation"] = foreshard::name_of(attention.implementation);
  return json;
}
Json json_of(const Pass& pass) {
  Json json{{"kind", traffic_of(pass.kind).name},
            {"rows", pass.rows},
            {"columns", pass.columns},
            {"dtype", foreshard::name_of(pass.dtype)}};
  if (pass.state_bytes > 0) json["state_bytes"] = pass.state_bytes;
  if (pass.launches > 1) json["launches"] = pass.launches;
  return json;
}

class BodyWriter {
 public:
  BodyWriter(Json& task, const GroupTable& groups) : task_(task), groups_(groups) {}
  void operator()(const Kernel& kernel) const { std::visit(*this, kernel); }
  void operator()(const Gemm& gemm) const { task_["gemm"] = json_of(gemm); }
  void operator()(const Attention& attention) const { task_["attention"] = json_of(attention); }
  void operator()(const Pass& pass) const { task_["pass"] = json_of(pass); }
  void operator()(const Communication& communication) const {
    task_["communication"] = {{"kind", name_of(communication.kind)},
                              {"group", groups_.index_of(communication.group)},
                              {"bytes", number(communication.bytes.in_base())},
                              {"dtype", foreshard::name_of(communication.dtype)},
                              {"purpose", name_of(communication.purpose)},
                              {"tag", communication.tag}};
    if (!communication.transfers.empty()) {
      Json list = Json::array();
      for (const Transfer& transfer : communication.transfers)
        list.push_back(Json::array({transfer.from, transfer.to, number(transfer.bytes.in_base())}));
      task_["communication"]["transfers"] = std::move(list);
    }
    if (!communication.roots.empty())
      task_["communication"]["roots"] = write_ranges(communication.roots);
    if (const auto& routing = communication.routing)
      task_["communication"]["routing"] = {{"experts", routing->experts},
                                           {"per_token", routing->per_token},
                                           {"groups", routing->groups},
                                           {"groups_per_token", routing->groups_per_token}};
  }
  void operator()(const Allocate& allocate) const {
    task_["allocate"] = {{"buffer", allocate.buffer},
                         {"kind", name_of(allocate.kind)},
                         {"bytes", number(allocate.bytes.in_base())}};
  }
  void operator()(const Free& free) const { task_["free"] = free.buffer; }
  void operator()(const Sync&) const { task_["sync"] = true; }
  void operator()(const HostWork& work) const {
    task_["host_work_s"] = number(work.time.in_base());
  }

 private:
  Json& task_;
  const GroupTable& groups_;
};

Json json_of(const Task& task, const GroupTable& groups) {
  Json json{{"name", task.name}};
  std::visit(BodyWriter(json, groups), task.body);
  if (task.stream.valid()) json["stream"] = task.stream.value();
  if (!task.after.empty()) json["after"] = task.after;
  if (task.optimizer) json["optimizer"] = true;
  if (task.launches != 1) json["launches"] = number(task.launches);
  return json;
}

Json json_of(const Call& call) {
  Json json = Json::array({call.block.value(), call.micro_batch, call.chunk, call.repeat,
                           call.first_layer, call.layer_step});
  if (call.after.empty()) return json;
  Json after = Json::array();
  for (const CallDependency& dependency : call.after)
    after.push_back(dependency.task < 0 ? Json::array({dependency.call})
                                        : Json::array({dependency.call, dependency.task}));
  json.push_back(std::move(after));
  return json;
}

// "[\n<indent>a,\n<indent>b]": one line per member.
template <class Range, class Text>
std::string lines(const Range& range, const std::string& indent, Text text) {
  std::string out = "[";
  for (const auto& member : range) {
    out += out.size() > 1 ? ",\n" : "\n";
    out += indent + text(member);
  }
  return out + "]";
}

std::string text_of(const Block& block, const GroupTable& groups) {
  return "{\"name\":" + dump(block.name) + ",\"tasks\":" +
         lines(block.tasks, "   ", [&](const Task& task) { return dump(json_of(task, groups)); }) +
         "}";
}

// [[seconds, ranks], ...], the shortest first.
Json json_of(const std::vector<Seconds>& launch_time_of_rank) {
  std::map<double, std::vector<std::int32_t>> ranks;
  for (std::size_t r = 0; r < launch_time_of_rank.size(); ++r)
    ranks[launch_time_of_rank[r].in_base()].push_back(static_cast<std::int32_t>(r));
  Json json = Json::array();
  for (const auto& [time, of] : ranks)
    json.push_back(Json::array({number(time), write_ranges(of)}));
  return json;
}

std::string text_of(const Role& role) {
  Json memory = Json::array();
  for (const StaticMemory& buffer : role.memory)
    memory.push_back(Json::array({name_of(buffer.kind), number(buffer.bytes.in_base())}));
  return "{\"name\":" + dump(role.name) + ",\"ranks\":" + dump(write_ranges(role.ranks)) +
         ",\"memory\":" + dump(memory) + ",\"calls\":" +
         lines(role.calls, "   ", [](const Call& call) { return dump(json_of(call)); }) + "}";
}

}  // namespace

std::string to_json(const Program& program) {
  const GroupTable groups(program);
  Json mesh = Json::array();
  for (const MeshAxis& axis : program.mesh) mesh.push_back(Json::array({axis.name, axis.size}));
  Json streams = Json::array();
  for (const Stream& stream : program.streams) streams.push_back(stream.name);
  const Json totals{{"samples", number(program.totals.samples)},
                    {"tokens", number(program.totals.tokens)},
                    {"model_flops", number(program.totals.model_flops.in_base())},
                    {"peak_dtype", program.totals.peak_dtype}};

  std::string out = "{\"schema\":" + dump(kProgramSchema);
  const auto add = [&](const std::string& key, const std::string& text) {
    out += ",\n\"" + key + "\":" + text;
  };
  add("name", dump(program.name));
  add("mesh", dump(mesh));
  if (!program.device_of_rank.empty())
    add("device_of_rank", dump(write_ranges(program.device_of_rank)));
  add("streams", dump(streams));
  add("launch_time_s", dump(number(program.launch_time.in_base())));
  if (!program.launch_time_of_rank.empty())
    add("launch_times_s", dump(json_of(program.launch_time_of_rank)));
  add("totals", dump(totals));
  add("groups", lines(groups.groups(), "  ", [](const Group* group) {
        return dump(std::visit([](const auto& g) { return json_of(g); }, *group));
      }));
  add("blocks",
      lines(program.blocks, "  ", [&](const Block& block) { return text_of(block, groups); }));
  add("roles", lines(program.roles, "  ", [](const Role& role) { return text_of(role); }));
  return out + "}\n";
}

}  // namespace foreshard::program
