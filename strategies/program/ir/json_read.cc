#include <algorithm>
#include <array>
#include <limits>

#include "base/limits.h"

#include "strategies/program/ir/group.h"
#include "strategies/program/ir/json.h"
#include "strategies/program/ir/json_node.h"
#include "strategies/program/ir/program.h"

namespace foreshard::program {
namespace {

using Node = JsonNode;

// Members of all rank lists together: a short text must not ask for unbounded memory.
constexpr std::int64_t kMaxInt32 = std::numeric_limits<std::int32_t>::max();

std::optional<Direction> find_direction(std::string_view name) {
  if (name == "forward") return Direction::kForward;
  if (name == "backward") return Direction::kBackward;
  return std::nullopt;
}

DType dtype_of(const Node& node) {
  return node.named("dtype", find_dtype);
}
Bytes bytes_of(const Node& node) {
  return Bytes::from_base(node.non_negative());
}

Kernel gemm(const Node& node) {
  node.fields({"batch", "m", "n", "k", "dtype", "accumulate"}, {"matrix_units", "scales", "apart"});
  return Gemm{
      .batch = node["batch"].count(),
      .m = node["m"].count(),
      .n = node["n"].count(),
      .k = node["k"].count(),
      .dtype = dtype_of(node["dtype"]),
      .accumulate = node["accumulate"].flag(),
      .matrix_units = !node.has("matrix_units") || node["matrix_units"].flag(),
      .scales = node.has("scales") ? node["scales"].named("scales", find_scales) : Scales::kTensor,
      .apart = node.has("apart") && node["apart"].flag()};
}

std::optional<AttentionImplementation> find_fused_attention(std::string_view name) {
  const auto found = find_attention(name);
  return found == AttentionImplementation::kUnfused ? std::nullopt : found;
}

Kernel attention(const Node& node) {
  node.fields({"batch", "query_heads", "kv_heads", "query_length", "key_length", "head_dim",
               "causal", "direction", "dtype"},
              {"value_dim", "window", "sample", "implementation"});
  return Attention{.batch = node["batch"].count(),
                   .query_heads = node["query_heads"].count(),
                   .kv_heads = node["kv_heads"].count(),
                   .query_length = node["query_length"].count(),
                   .key_length = node["key_length"].count(),
                   .head_dim = node["head_dim"].count(),
                   .value_dim = node.has("value_dim") ? node["value_dim"].count() : 0,
                   .causal = node["causal"].flag(),
                   .window = node.has("window") ? node["window"].count() : 0,
                   .sample = node.has("sample") ? node["sample"].count() : 0,
                   .direction = node["direction"].named("direction", find_direction),
                   .dtype = dtype_of(node["dtype"]),
                   .implementation = node.has("implementation")
                                         ? node["implementation"].named("kernel of fused attention",
                                                                        find_fused_attention)
                                         : AttentionImplementation::kFused};
}

Kernel pass(const Node& node) {
  node.fields({"kind", "rows", "columns", "dtype"}, {"state_bytes", "launches"});
  return Pass{.kind = node["kind"].named("pass", find_pass).kind,
              .rows = node["rows"].count(),
              .columns = node["columns"].count(),
              .dtype = dtype_of(node["dtype"]),
              .state_bytes = node.has("state_bytes") ? node["state_bytes"].index() : 0,
              .launches = node.has("launches") ? node["launches"].count() : 1};
}

class Reader {
 public:
  Program read(const Node& root) {
    root.fields({"schema", "name", "mesh", "streams", "launch_time_s", "totals", "groups", "blocks",
                 "roles"},
                {"device_of_rank", "launch_times_s"});
    Program program;
    program.name = root["name"].text();
    program.mesh = mesh(root["mesh"]);
    if (root.has("device_of_rank")) program.device_of_rank = ranks(root["device_of_rank"]);
    root["streams"].each(program.streams, [](const Node& n) { return Stream{n.text()}; });
    program.launch_time = Seconds::from_base(root["launch_time_s"].non_negative());
    if (root.has("launch_times_s"))
      program.launch_time_of_rank = launch_times(root["launch_times_s"]);
    program.totals = totals(root["totals"]);
    root["groups"].each(groups_, [this](const Node& n) { return group(n); });
    root["blocks"].each(program.blocks, [this](const Node& n) { return block(n); });
    root["roles"].each(program.roles, [this](const Node& n) { return role(n); });
    return program;
  }

 private:
  static std::vector<MeshAxis> mesh(const Node& node) {
    std::vector<MeshAxis> axes;
    node.each(axes, [](const Node& axis) {
      axis.size_between(2, 2);
      return MeshAxis{axis.at(0).text(), axis.at(1).integer(1, kMaxInt32)};
    });
    return axes;
  }

  std::vector<std::int32_t> ranks(const Node& node) {
    auto list = read_ranges(node.text(), limits::raised(limits::kListedRanks) - listed_);
    if (!list) node.fault(list.error().message);
    listed_ += list->size();
    return *std::move(list);
  }

  std::vector<Seconds> launch_times(const Node& node) {
    std::vector<std::pair<Seconds, std::vector<std::int32_t>>> lists;
    std::size_t count = 0;
    node.each(lists, [&](const Node& list) {
      list.size_between(2, 2);
      auto of = ranks(list.at(1));
      count += of.size();
      return std::pair(Seconds::from_base(list.at(0).non_negative()), std::move(of));
    });
    const Seconds none = Seconds::from_base(-1);
    std::vector<Seconds> times(count, none);
    for (const auto& [time, of] : lists) {
      for (const std::int32_t rank : of) {
        if (static_cast<std::size_t>(rank) >= count ||
            times[static_cast<std::size_t>(rank)] != none)
          node.fault("rank " + std::to_string(rank) +
                     " is listed twice, or a lower one is not listed");
        times[static_cast<std::size_t>(rank)] = time;
      }
    }
    return times;
  }

  static Totals totals(const Node& node) {
    node.fields({"samples", "tokens", "model_flops", "peak_dtype"});
    return {.samples = node["samples"].non_negative(),
            .tokens = node["tokens"].non_negative(),
            .model_flops = Flops::from_base(node["model_flops"].non_negative()),
            .peak_dtype = node["peak_dtype"].text()};
  }

  Group group(const Node& node) {
    if (node.has("axes")) {
      node.fields({"axes"}, {"coordinates"});
      AxisGroup group;
      node["axes"].each(group.axes, [](const Node& n) { return n.index(); });
      if (node.has("coordinates"))
        node["coordinates"].each(group.coordinates, [](const Node& n) { return n.count(); });
      return group;
    }
    if (node.has("axis")) {
      node.fields({"axis", "coordinate"});
      return AxisPeer{node["axis"].index(), node["coordinate"].count()};
    }
    node.fields({"ranks"}, {"axes", "axis"});
    RankGroups group;
    node["ranks"].each(group.groups, [this](const Node& n) { return ranks(n); });
    return group;
  }

  TaskBody communication(const Node& node) {
    node.fields({"kind", "group", "bytes", "dtype", "purpose", "tag"},
                {"transfers", "roots", "routing"});
    const auto index = static_cast<std::size_t>(node["group"].index());
    if (index >= groups_.size())
      node["group"].fault(std::to_string(index) + " is not one of the " +
                          std::to_string(groups_.size()) + " groups");
    Communication what{.kind = node["kind"].named("kind of communication", find_collective),
                       .group = groups_[index],
                       .bytes = program::bytes_of(node["bytes"]),
                       .dtype = dtype_of(node["dtype"]),
                       .purpose = node["purpose"].named("purpose", find_purpose),
                       .tag = node["tag"].text()};
    if (node.has("transfers"))
      node["transfers"].each(what.transfers, [](const Node& n) {
        n.size_between(3, 3);
        return Transfer{n.at(0).index(), n.at(1).index(), program::bytes_of(n.at(2))};
      });
    if (node.has("roots")) what.roots = ranks(node["roots"]);
    if (node.has("routing")) {
      const Node routing = node["routing"];
      routing.fields({"experts", "per_token", "groups", "groups_per_token"});
      what.routing = {.experts = routing["experts"].index(),
                      .per_token = routing["per_token"].index(),
                      .groups = routing["groups"].index(),
                      .groups_per_token = routing["groups_per_token"].index()};
    }
    return what;
  }

  TaskBody body(const Node& task) {
    if (task.has("gemm")) return gemm(task["gemm"]);
    if (task.has("attention")) return attention(task["attention"]);
    if (task.has("pass")) return pass(task["pass"]);
    if (task.has("communication")) return communication(task["communication"]);
    if (task.has("allocate")) {
      const Node node = task["allocate"];
      node.fields({"buffer", "kind", "bytes"});
      return Allocate{node["buffer"].text(), node["kind"].named("kind of memory", find_memory_kind),
                      program::bytes_of(node["bytes"])};
    }
    if (task.has("free")) return Free{task["free"].text()};
    if (task.has("sync")) {
      if (!task["sync"].flag()) task["sync"].fault("expected true");
      return Sync{};
    }
    return HostWork{Seconds::from_base(task["host_work_s"].non_negative())};
  }

  Task task(const Node& node) {
    static constexpr std::array<std::string_view, 8> kBodies{
        "gemm", "attention", "pass", "communication", "allocate", "free", "sync", "host_work_s"};
    node.fields({"name"}, {"gemm", "attention", "pass", "communication", "allocate", "free", "sync",
                           "host_work_s", "stream", "after", "optimizer", "launches"});
    const auto bodies = std::count_if(kBodies.begin(), kBodies.end(),
                                      [&](std::string_view key) { return node.has(key); });
    if (bodies != 1)
      node.fault(
          "expected exactly one of gemm, attention, pass, communication, allocate, free, sync, "
          "host_work_s, found " +
          std::to_string(bodies));
    Task task{.name = node["name"].text(), .body = body(node), .stream = {}, .after = {}};
    if (node.has("stream")) task.stream = StreamId(node["stream"].index());
    if (node.has("after")) node["after"].each(task.after, [](const Node& n) { return n.index(); });
    if (node.has("optimizer")) task.optimizer = node["optimizer"].flag();
    if (node.has("launches")) task.launches = node["launches"].non_negative();
    return task;
  }

  Block block(const Node& node) {
    node.fields({"name", "tasks"});
    Block block{node["name"].text(), {}};
    node["tasks"].each(block.tasks, [this](const Node& n) { return task(n); });
    return block;
  }

  static Call call(const Node& node) {
    const std::size_t size = node.size_between(6, 7);
    const auto signed_int = [&](std::size_t i) {
      return static_cast<std::int32_t>(node.at(i).integer(-kMaxInt32, kMaxInt32));
    };
    Call call;
    call.block = BlockId(node.at(0).index());
    call.micro_batch = node.at(1).index();
    call.chunk = node.at(2).index();
    call.repeat = node.at(3).index();
    call.first_layer = signed_int(4);
    call.layer_step = signed_int(5);
    if (size == 7)
      node.at(6).each(call.after, [](const Node& n) {
        const std::size_t parts = n.size_between(1, 2);
        return CallDependency{n.at(0).index(), parts == 2 ? n.at(1).index() : -1};
      });
    return call;
  }

  Role role(const Node& node) {
    node.fields({"name", "ranks", "memory", "calls"});
    Role role;
    role.name = node["name"].text();
    role.ranks = ranks(node["ranks"]);
    node["memory"].each(role.memory, [](const Node& n) {
      n.size_between(2, 2);
      return StaticMemory{n.at(0).named("kind of memory", find_memory_kind),
                          program::bytes_of(n.at(1))};
    });
    node["calls"].each(role.calls, call);
    return role;
  }

  std::vector<Group> groups_;
  std::size_t listed_ = 0;
};

}  // namespace

Result<Program> program_from_json(std::string_view text) {
  return read_json<Program>(
      text,
      {.what = "program", .schema = kProgramSchema, .made_by = "foreshard export --program FILE"},
      [](const Node& root) { return Reader().read(root); });
}

}  // namespace foreshard::program
