#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>

#include "strategies/program/ir/json.h"
#include "strategies/program/ir/names.h"
#include "strategies/program/ir/rank_ranges.h"

namespace foreshard::program {
namespace {

using Json = nlohmann::json;

// A Program is never nested deeper; a hostile text is not parsed further than this.
constexpr int kMaxDepth = 12;
// Members of all rank lists together: a short text must not ask for unbounded memory.
constexpr std::size_t kMaxListed = std::size_t{1} << 25;
constexpr std::int64_t kMaxInt32 = std::numeric_limits<std::int32_t>::max();

// Leaves the reader from any depth; program_from_json catches it and nothing else sees it.
struct Fault {
  Error error;
};

[[noreturn]] void fail(const std::string& place, const std::string& why,
                       Error::Code code = Error::Code::kInvalidInput) {
  throw Fault{{code, "program: " + (place.empty() ? "" : place + ": ") + why}};
}

std::string in_quotes(std::string_view text) {
  return "'" + std::string(text.substr(0, 60)) + "'";
}

// A value and where it is in the document.
class Node {
 public:
  explicit Node(const Json& value) : value_(value) {}

  std::string place() const {
    if (!parent_) return {};
    const std::string above = parent_->place();
    if (key_.empty()) return above + "[" + std::to_string(index_) + "]";
    return above.empty() ? std::string(key_) : above + "." + std::string(key_);
  }
  [[noreturn]] void fault(const std::string& why) const { fail(place(), why); }
  [[noreturn]] void expected(const std::string& what) const {
    fault("expected " + what + ", found " + value_.type_name());
  }

  // An object with all of `required` and nothing but those and `optional`.
  const Node& fields(std::initializer_list<std::string_view> required,
                     std::initializer_list<std::string_view> optional = {}) const {
    if (!value_.is_object()) expected("an object");
    for (const auto& [key, member] : value_.items()) {
      const auto is_key = [&k = key](std::string_view legal) { return legal == k; };
      if (std::none_of(required.begin(), required.end(), is_key) &&
          std::none_of(optional.begin(), optional.end(), is_key))
        fault("unknown key " + in_quotes(key) + "; legal: " + joined(required, optional));
    }
    for (const std::string_view key : required)
      if (!has(key)) fault("key " + in_quotes(key) + " is missing");
    return *this;
  }
  bool has(std::string_view key) const { return value_.is_object() && value_.contains(key); }
  // \pre has(key)
  Node operator[](std::string_view key) const { return Node(*value_.find(key), *this, key, 0); }

  std::size_t size() const {
    if (!value_.is_array()) expected("an array");
    return value_.size();
  }
  std::size_t size_between(std::size_t least, std::size_t most) const {
    const std::size_t n = size();
    if (n < least || n > most)
      fault("expected an array of " + std::to_string(least) +
            (least == most ? "" : " to " + std::to_string(most)) + " members, found " +
            std::to_string(n));
    return n;
  }
  Node at(std::size_t index) const { return Node(value_[index], *this, {}, index); }

  std::string text() const {
    if (!value_.is_string()) expected("a string");
    return value_.get<std::string>();
  }
  bool flag() const {
    if (!value_.is_boolean()) expected("true or false");
    return value_.get<bool>();
  }
  std::int64_t integer(std::int64_t least, std::int64_t most) const {
    if (!value_.is_number_integer()) expected("an integer");
    const bool huge = value_.is_number_unsigned() &&
                      value_.get<std::uint64_t>() >
                          static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (huge || value_.get<std::int64_t>() < least || value_.get<std::int64_t>() > most)
      fault(value_.dump() + " is not in [" + std::to_string(least) + ", " + std::to_string(most) +
            "]");
    return value_.get<std::int64_t>();
  }
  std::int32_t index() const { return static_cast<std::int32_t>(integer(0, kMaxInt32)); }
  std::int64_t count() const { return integer(0, std::int64_t{1} << 53); }
  double non_negative() const {
    if (!value_.is_number()) expected("a number");
    const double value = value_.get<double>();
    if (!(value >= 0) || !std::isfinite(value))
      fault(value_.dump() + " is not a finite number of 0 or more");
    return value;
  }
  // One of the names that `find` knows.
  template <class Find>
  auto named(const std::string& what, Find find) const {
    const std::string name = text();
    const auto found = find(name);
    if (!found) fault(in_quotes(name) + " is no " + what);
    return *found;
  }

 private:
  Node(const Json& value, const Node& parent, std::string_view key, std::size_t index)
      : value_(value), parent_(&parent), key_(key), index_(index) {}

  static std::string joined(std::initializer_list<std::string_view> a,
                            std::initializer_list<std::string_view> b) {
    std::string out;
    for (const auto& list : {a, b})
      for (const std::string_view key : list) out += (out.empty() ? "" : ", ") + std::string(key);
    return out;
  }

  const Json& value_;
  const Node* parent_ = nullptr;
  std::string_view key_;
  std::size_t index_ = 0;
};

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
  node.fields({"batch", "m", "n", "k", "dtype", "accumulate"});
  return Gemm{.batch = node["batch"].count(),
              .m = node["m"].count(),
              .n = node["n"].count(),
              .k = node["k"].count(),
              .dtype = dtype_of(node["dtype"]),
              .accumulate = node["accumulate"].flag()};
}

Kernel attention(const Node& node) {
  node.fields({"batch", "query_heads", "kv_heads", "query_length", "key_length", "head_dim",
               "causal", "direction", "dtype"});
  return Attention{.batch = node["batch"].count(),
                   .query_heads = node["query_heads"].count(),
                   .kv_heads = node["kv_heads"].count(),
                   .query_length = node["query_length"].count(),
                   .key_length = node["key_length"].count(),
                   .head_dim = node["head_dim"].count(),
                   .causal = node["causal"].flag(),
                   .direction = node["direction"].named("direction", find_direction),
                   .dtype = dtype_of(node["dtype"])};
}

Kernel pass(const Node& node) {
  node.fields({"kind", "rows", "columns", "dtype"});
  return Pass{.kind = node["kind"].named("pass", find_pass).kind,
              .rows = node["rows"].count(),
              .columns = node["columns"].count(),
              .dtype = dtype_of(node["dtype"])};
}

class Reader {
 public:
  Program read(const Node& root) {
    root.fields({"schema", "name", "mesh", "streams", "launch_time_s", "totals", "groups", "blocks",
                 "roles"},
                {"device_of_rank"});
    Program program;
    program.name = root["name"].text();
    program.mesh = mesh(root["mesh"]);
    if (root.has("device_of_rank")) program.device_of_rank = ranks(root["device_of_rank"]);
    each(root["streams"], program.streams, [](const Node& n) { return Stream{n.text()}; });
    program.launch_time = Seconds::from_base(root["launch_time_s"].non_negative());
    program.totals = totals(root["totals"]);
    each(root["groups"], groups_, [this](const Node& n) { return group(n); });
    each(root["blocks"], program.blocks, [this](const Node& n) { return block(n); });
    each(root["roles"], program.roles, [this](const Node& n) { return role(n); });
    return program;
  }

 private:
  template <class T, class Read>
  static void each(const Node& node, std::vector<T>& out, Read read) {
    const std::size_t n = node.size();
    out.reserve(n);
    for (std::size_t i = 0; i < n; ++i) out.push_back(read(node.at(i)));
  }

  static std::vector<MeshAxis> mesh(const Node& node) {
    std::vector<MeshAxis> axes;
    each(node, axes, [](const Node& axis) {
      axis.size_between(2, 2);
      return MeshAxis{axis.at(0).text(), axis.at(1).integer(1, kMaxInt32)};
    });
    return axes;
  }

  std::vector<std::int32_t> ranks(const Node& node) {
    auto list = read_ranges(node.text(), kMaxListed - listed_);
    if (!list) node.fault(list.error().message);
    listed_ += list->size();
    return *std::move(list);
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
      each(node["axes"], group.axes, [](const Node& n) { return n.index(); });
      if (node.has("coordinates"))
        each(node["coordinates"], group.coordinates, [](const Node& n) { return n.count(); });
      return group;
    }
    if (node.has("axis")) {
      node.fields({"axis", "coordinate"});
      return AxisPeer{node["axis"].index(), node["coordinate"].count()};
    }
    node.fields({"ranks"}, {"axes", "axis"});
    RankGroups group;
    each(node["ranks"], group.groups, [this](const Node& n) { return ranks(n); });
    return group;
  }

  TaskBody communication(const Node& node) {
    node.fields({"kind", "group", "bytes", "dtype", "purpose", "tag"}, {"transfers", "roots"});
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
      each(node["transfers"], what.transfers, [](const Node& n) {
        n.size_between(3, 3);
        return Transfer{n.at(0).index(), n.at(1).index(), program::bytes_of(n.at(2))};
      });
    if (node.has("roots")) what.roots = ranks(node["roots"]);
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
                           "host_work_s", "stream", "after", "optimizer"});
    const auto bodies = std::count_if(kBodies.begin(), kBodies.end(),
                                      [&](std::string_view key) { return node.has(key); });
    if (bodies != 1)
      node.fault(
          "expected exactly one of gemm, attention, pass, communication, allocate, free, sync, "
          "host_work_s, found " +
          std::to_string(bodies));
    Task task{.name = node["name"].text(), .body = body(node), .stream = {}, .after = {}};
    if (node.has("stream")) task.stream = StreamId(node["stream"].index());
    if (node.has("after")) each(node["after"], task.after, [](const Node& n) { return n.index(); });
    if (node.has("optimizer")) task.optimizer = node["optimizer"].flag();
    return task;
  }

  Block block(const Node& node) {
    node.fields({"name", "tasks"});
    Block block{node["name"].text(), {}};
    each(node["tasks"], block.tasks, [this](const Node& n) { return task(n); });
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
      each(node.at(6), call.after, [](const Node& n) {
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
    each(node["memory"], role.memory, [](const Node& n) {
      n.size_between(2, 2);
      return StaticMemory{n.at(0).named("kind of memory", find_memory_kind),
                          program::bytes_of(n.at(1))};
    });
    each(node["calls"], role.calls, call);
    return role;
  }

  std::vector<Group> groups_;
  std::size_t listed_ = 0;
};

// Parses, refusing what nlohmann-json would accept in silence: deep nesting and repeated keys.
Json parse(std::string_view text) {
  std::vector<std::set<std::string>> keys;
  const auto guard = [&](int depth, Json::parse_event_t event, Json& parsed) {
    if (depth > kMaxDepth) fail("", "nested deeper than " + std::to_string(kMaxDepth) + " levels");
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key &&
        !keys.back().insert(parsed.get_ref<const std::string&>()).second)
      fail("", "key " + in_quotes(parsed.get_ref<const std::string&>()) + " appears twice");
    return true;
  };
  return Json::parse(text, guard);
}

}  // namespace

Result<Program> program_from_json(std::string_view text) {
  try {
    if (text.size() > kLargestProgramText)
      fail("", "larger than " + std::to_string(kLargestProgramText >> 20) + " MiB");
    const Json json = parse(text);
    const Node root(json);
    if (!root.has("schema")) root.fields({"schema"}, {});
    if (const std::string schema = root["schema"].text(); schema != kProgramSchema)
      fail("schema",
           in_quotes(schema) + " cannot be read; this version reads '" +
               std::string(kProgramSchema) + "'",
           Error::Code::kUnsupported);
    return Reader().read(root);
  } catch (const Fault& fault) {
    return fault.error;
  } catch (const Json::exception& error) {
    return Error{Error::Code::kInvalidInput, std::string("program: no JSON: ") + error.what()};
  }
}

}  // namespace foreshard::program
