#include "tests/configs/probes.h"

#include <fmt/format.h>
#include <span>

#include "base/yaml/describe.h"
#include "tests/base/temporary_folder.h"
#include "tests/configs/from_catalogue.h"
#include "tests/configs/sweep_text.h"
#include "tests/test.h"

#include "sim/report/json.h"
#include "sim/report/text.h"
#include "sim/study/expense.h"
#include "sim/study/run.h"
#include "strategies/program/ir/json.h"
#include "strategies/program/lower/lower.h"
#include "topology/clock_spread.h"
#include "topology/cluster_for.h"
#include "topology/plausibility.h"
#include "validate/tables/outcome.h"

namespace foreshard {
namespace {

constexpr const char* kShipped = FORESHARD_SOURCE_DIR "/configs";

const comm::Parameters& nccl() {
  static const auto parameters = from_catalogue<comm::Parameters>("nccl");
  return parameters;
}

ClusterConfig cluster_of(std::int64_t nodes, NodeConfig node) {
  ClusterConfig config;
  config.nodes = nodes;
  config.node = yaml::Ref<NodeConfig>{std::move(node), ""};
  config.fabric.kind = "single-switch";
  return config;
}

// Every operation of the group.
std::string swept(const ClusterView& cluster, const comm::Parameters& parameters,
                  const std::vector<DeviceId>& devices) {
  using comm::CollectiveKind;
  std::string text;
  const auto add_rows = [&](CollectiveKind kind, std::vector<DeviceId> members,
                            std::vector<comm::Transfer> transfers) {
    text += sweep_text(
        kind,
        {.cluster = &cluster, .devices = std::move(members), .transfers = std::move(transfers)},
        parameters);
  };
  if (devices.size() > 1) {
    add_rows(CollectiveKind::kSend, {devices[0], devices[1]}, {});
    add_rows(CollectiveKind::kSend, {devices.front(), devices.back()}, {});
  }
  for (const auto kind :
       {CollectiveKind::kAllReduce, CollectiveKind::kAllGather, CollectiveKind::kReduceScatter,
        CollectiveKind::kBroadcast, CollectiveKind::kAllToAll})
    add_rows(kind, devices, {});
  if (devices.size() > 1)
    add_rows(CollectiveKind::kExchange, devices, round_of(std::ssize(devices)));
  return text;
}

// At most 16 devices: whole nodes if there are few, else every n-th.
std::vector<DeviceId> some_of(const ClusterView& cluster) {
  constexpr std::size_t kMost = 16;
  const std::size_t count = cluster.devices().size();
  const std::size_t stride = std::max<std::size_t>(1, count / kMost);
  std::vector<DeviceId> devices;
  for (std::size_t i = 0; i < count && devices.size() < kMost; i += stride)
    if (cluster.devices()[i].up) devices.emplace_back(static_cast<std::int64_t>(i));
  return devices;
}

std::string collectives_on(const ClusterConfig& config, const comm::Parameters& parameters,
                           bool first_node_only = false) {
  const auto cluster = build_cluster(config);
  if (!cluster) return cluster.error().message;
  auto devices = some_of(*cluster);
  if (first_node_only)
    std::erase_if(devices, [&](DeviceId id) { return cluster->devices()[id.index()].node != 0; });
  return swept(*cluster, parameters, devices);
}

Model small_model(Activation activation = Activation::kGelu) {
  Model model;
  model.name = "small";
  model.layers = 2;
  model.hidden = 1024;
  model.heads = 16;
  model.vocabulary = 4099;  // no multiple of anything
  model.activation = activation;
  model.sequence = 1024;
  return model;
}

Strategy strategy_with(const std::string& framework) {
  Strategy strategy;
  strategy.framework = {from_catalogue<Framework>(framework), framework};
  return strategy;
}

ClusterConfig two_nodes_of(const DeviceType& device) {
  NodeConfig two;
  two.device = {device, ""};
  two.gpus = 2;
  two.nvlink = NvlinkConfig{};
  two.nvlink->bandwidth.value = 300_GB_s;
  two.nics = NicConfig{.count = 2};
  two.nics->bandwidth.value = 200_Gbit_s;
  return cluster_of(2, std::move(two));
}

// Every device and link. \pre `cluster` has few.
std::string wiring_of(const ClusterConfig& config) {
  const auto cluster = build_cluster(config);
  if (!cluster) return cluster.error().message;
  std::string text;
  for (const Device& device : cluster->devices())
    text += fmt::format("{} {} {};", device.up, device.speed, device.type.value());
  for (const Link& link : cluster->links())
    text += fmt::format("{} {} {} {};", link.from.value(), link.to.value(), link.up,
                        link.bandwidth.in_base());
  return text;
}

// A data-parallel step on the first devices, and its expense on all of them.
std::string step_on(const ClusterConfig& config) {
  const auto cluster = build_cluster(config);
  if (!cluster) return cluster.error().message;
  Strategy strategy = strategy_with("megatron-lm");
  strategy.data_parallel = std::min<std::int64_t>(4, std::ssize(cluster->devices()));
  strategy.global_batch = strategy.data_parallel;
  auto lowered = lower::lower(small_model(), strategy, {});
  if (!lowered) return lowered.error().message;
  const auto program = study::with_launch_times(*std::move(lowered), *cluster);
  const auto prediction = sim::simulate(*cluster, program, nccl(), {});
  if (!prediction) return prediction.error().message;
  const auto expense = study::expense_of(*prediction, *cluster, config);
  const auto base = [](const auto& value) { return value ? value->in_base() : -1; };
  return fmt::format("{} {} {} {} {} {} {}", prediction->step.in_base(), prediction->mfu,
                     prediction->memory_capacity.in_base(), base(expense.energy),
                     base(expense.rent), expense.unused, cluster->name());
}

// Kernels of every kind, in sizes that take different tiles, splits and rates.
const std::vector<Kernel>& kernels() {
  static const auto list = [] {
    std::vector<Kernel> all;
    for (const DType dtype : {DType::kFp32, DType::kTf32, DType::kFp16, DType::kBf16, DType::kFp8,
                              DType::kFp4, DType::kInt8}) {
      for (const std::int64_t m : {16, 64, 128, 192, 256, 512, 1000, 4096})
        for (const std::int64_t n : {64, 96, 128, 256, 1000, 3072, 16384})
          for (const std::int64_t k : {64, 512, 1001, 2048, 16384})
            all.emplace_back(Gemm{.m = m, .n = n, .k = k, .dtype = dtype});
      all.emplace_back(
          Gemm{.batch = 16, .m = 512, .n = 512, .k = 65, .dtype = dtype, .matrix_units = false});
      all.emplace_back(
          Gemm{.batch = 16, .m = 512, .n = 512, .k = 512, .dtype = dtype, .apart = true});
      all.emplace_back(Gemm{.m = 4096, .n = 4096, .k = 512, .dtype = dtype, .accumulate = true});
      for (const Scales scales : {Scales::kBlocks, Scales::kVectors})
        all.emplace_back(Gemm{.m = 4096, .n = 4096, .k = 4096, .dtype = dtype, .scales = scales});
      for (const std::int64_t head : {32, 64, 80, 96, 128, 160, 192, 256})
        for (const std::int64_t length : {512, 8192})
          for (const Direction direction : {Direction::kForward, Direction::kBackward})
            for (const char* name : {"fused", "triton-flash-1", "flash-2", "flash-3", "cudnn"})
              all.emplace_back(Attention{.batch = 2,
                                         .query_heads = 16,
                                         .kv_heads = 16,
                                         .query_length = length,
                                         .key_length = length,
                                         .head_dim = head,
                                         .direction = direction,
                                         .dtype = dtype,
                                         .implementation = find_attention(name).value()});
    }
    for (int kind = 0; kind <= static_cast<int>(PassKind::kOptimizer); ++kind)
      for (const std::int64_t rows : {1, 1 << 20})
        all.emplace_back(Pass{.kind = static_cast<PassKind>(kind), .rows = rows, .columns = 64});
    return all;
  }();
  return list;
}

std::string times_of(const DeviceType& device) {
  std::string text;
  for (const Kernel& kernel : kernels())
    text += fmt::format("{} ", time_of(kernel, device).total().in_base());
  for (const MeasuredKernel& measured : device.efficiency->measured)
    text += fmt::format("{} {} ", measured.kernel, measured.time.in_base());
  return text;
}

std::string program_text(const Model& model, const Strategy& strategy) {
  std::string text;
  for (const StrategyFault& fault : faults_in(strategy, model, strategy.devices()))
    text += fault.message;
  if (!text.empty()) return text;
  const auto program = lower::lower(model, strategy, {});
  return program ? program::to_json(*program) : program.error().message;
}

}  // namespace

Probes<DeviceType> probes_of(const DeviceType*, const std::string&) {
  return {times_of, [](const DeviceType& device) { return step_on(two_nodes_of(device)); },
          [](const DeviceType& device) { return collectives_on(two_nodes_of(device), nccl()); }};
}

Probes<DeviceEfficiency> probes_of(const DeviceEfficiency*, const std::string& name) {
  DeviceType device = from_catalogue<DeviceType>(name == "Hopper"        ? "H100-SXM"
                                                 : name == "GH200"       ? "GH200-96GB"
                                                 : name == "Blackwell"   ? "B200"
                                                 : name == "Volta"       ? "V100-SXM-32GB"
                                                 : name == "Ampere-PCIe" ? "A100-PCIe-80GB"
                                                 : name == "host-core"   ? "host-core"
                                                 : name == "host-socket" ? "host-socket"
                                                                         : "A100-SXM-80GB");
  const auto with = [device](const DeviceEfficiency& efficiency) {
    DeviceType changed = device;
    changed.efficiency = {efficiency, ""};
    return changed;
  };
  return {[with](const DeviceEfficiency& efficiency) { return times_of(with(efficiency)); },
          [with](const DeviceEfficiency& efficiency) {
            return collectives_on(two_nodes_of(with(efficiency)), nccl());
          },
          [with](const DeviceEfficiency& efficiency) {
            return times_of(slowest_of(with(efficiency), 8));
          }};
}

Probes<DeviceDraw> probes_of(const DeviceDraw*, const std::string&) {
  return {[](const DeviceDraw& draw) {
    auto device = from_catalogue<DeviceType>("H100-SXM");
    device.draw = {draw, ""};
    return step_on(two_nodes_of(device));
  }};
}

Probes<NodeConfig> probes_of(const NodeConfig*, const std::string&) {
  const auto config = [](const NodeConfig& node) {
    return cluster_of(has_nics(node) ? 2 : 1, node);
  };
  return {[config](const NodeConfig& node) { return step_on(config(node)); },
          [config](const NodeConfig& node) { return collectives_on(config(node), nccl()); },
          [config](const NodeConfig& node) { return collectives_on(config(node), nccl(), true); },
          [config](const NodeConfig& node) { return wiring_of(config(node)); },
          // What rows of a table take it to be, which name the GPUs of a tray.
          [](const NodeConfig& node) {
            const TemporaryFolder folder;
            yaml::Loader loader({.catalogue = {kShipped}});
            const auto cluster =
                cluster_for({.device = node.device->name,
                             .gpus = 4 * node.gpus,
                             .gpus_per_node = 4,
                             .node = folder.write("node.yaml", yaml::echo(node)).string()},
                            loader);
            return cluster ? wiring_of(*cluster) : cluster.error().message;
          }};
}

Probes<ClusterConfig> probes_of(const ClusterConfig*, const std::string&) {
  return {[](const ClusterConfig& config) { return step_on(config); },
          [](const ClusterConfig& config) { return collectives_on(config, nccl()); }, wiring_of};
}

Probes<Transport> probes_of(const Transport*, const std::string&) {
  const auto on = [](std::int64_t nodes, const char* node) {
    return [nodes, node](const Transport& transport) {
      ClusterConfig config = cluster_of(nodes, from_catalogue<NodeConfig>(node));
      config.node->value.nics->transport = {transport, ""};
      return collectives_on(config, nccl());
    };
  };
  return {on(2, "hgx-a100-efa"), on(16, "dgx-h100")};
}

Probes<Model> probes_of(const Model*, const std::string&) {
  Probes<Model> probes;
  for (const char* framework : {"megatron-lm", "megatron-lm-sc21", "generic"})
    probes.push_back([strategy = strategy_with(framework)](const Model& model) {
      return program_text(model, strategy);
    });
  // How many ranks a token goes to.
  Strategy experts = strategy_with("megatron-lm");
  experts.expert_parallel = experts.data_parallel = experts.global_batch = 2;
  experts.token_dispatcher = TokenDispatcher::kDeepEp;
  probes.push_back([experts](const Model& model) {
    return model.experts > 0 ? program_text(model, experts) : std::string();
  });
  return probes;
}

Probes<Strategy> probes_of(const Strategy*, const std::string& name) {
  const auto model = from_catalogue<Model>(name.starts_with("gpt3") ? "gpt3-175b" : "llama3-8b");
  return {[model](const Strategy& strategy) { return program_text(model, strategy); }};
}

Probes<Framework> probes_of(const Framework*, const std::string&) {
  Probes<Framework> probes;
  for (const int zero_stage : {1, 3, 0, 2})
    for (const bool pipelined : {false, true})
      probes.push_back([zero_stage, pipelined](const Framework& framework) {
        Strategy strategy;
        strategy.framework = {framework, ""};
        strategy.tensor_parallel = 2;
        strategy.data_parallel = 2;
        strategy.pipeline_parallel = pipelined && zero_stage < 2 ? 2 : 1;
        strategy.zero_stage = zero_stage;
        strategy.global_batch = 8;
        strategy.precision = zero_stage == 0 ? DType::kFp16 : DType::kBf16;
        Model model = small_model(pipelined ? Activation::kSwiglu : Activation::kGelu);
        if (pipelined) model.positions = Positions::kRotary;
        return program_text(model, strategy);
      });
  probes.push_back([](const Framework& framework) {
    Strategy strategy;
    strategy.framework = {framework, ""};
    Model model = small_model();
    model.hidden = model.heads * 65;  // rows of no multiple of 16 bytes
    return program_text(model, strategy);
  });
  for (const Quantization recipe : {Quantization::kNone, Quantization::kFp8Current})
    probes.push_back([recipe](const Framework& framework) {
      Strategy strategy;
      strategy.framework = {framework, ""};
      strategy.data_parallel = strategy.global_batch = 4;
      strategy.expert_parallel = 2;
      strategy.zero_stage = recipe == Quantization::kNone ? 3 : 0;
      strategy.quantization = recipe;
      Model model = small_model();
      model.experts = 4;
      model.experts_per_token = 2;
      return program_text(model, strategy);
    });
  // Memory of the loss, beside which all else is small.
  probes.push_back([](const Framework& framework) {
    Strategy strategy;
    strategy.framework = {framework, ""};
    strategy.micro_batch = strategy.global_batch = 16;
    Model model = small_model();
    model.vocabulary = 131'072;
    return program_text(model, strategy);
  });
  // As GPT-OSS has its experts.
  probes.push_back([](const Framework& framework) {
    Strategy strategy;
    strategy.framework = {framework, ""};
    Model model = small_model(Activation::kSwiglu);
    model.experts = 4;
    model.experts_per_token = 2;
    model.mlp_bias = model.clamped_activation = true;
    return program_text(model, strategy);
  });
  // The interval where each family's steps are off by another factor.
  probes.push_back([](const Framework& framework) {
    study::ParameterErrors errors;
    errors.step_weights.family = 0.01;
    std::vector<study::MeasuredStepGroup> groups;
    for (const char* family : {"megatron", "pytorch", "deepspeed", "none"})
      groups.push_back({.source = family,
                        .kind = {.family = family},
                        .steps = 8,
                        .ratios = {1.0 + static_cast<double>(groups.size())}});
    const auto found = study::errors_of({.family = framework.family}, groups, errors.step_weights);
    return fmt::format("{} {}", found.low, found.high);
  });
  probes.push_back([](const Framework& framework) {
    const TemporaryFolder folder;
    const auto file =
        folder.write("study.yaml",
                     fmt::format("cluster: {{nodes: 2, node: dgx-a100-80gb}}\ngraph: {{file: {}}}\n"
                                 "strategy:\n  tensor_parallel: 4\n  data_parallel: 4\n"
                                 "  micro_batch: 1024\n  global_batch: 4096\n  framework: {}\n",
                                 std::string(kShipped) + "/graphs/mlp.yaml",
                                 folder.write("framework.yaml", yaml::echo(framework)).string()));
    bool refused = false;
    return study_result(file.string(), "", "", refused);
  });
  return probes;
}

Probes<GraphConfig> probes_of(const GraphConfig*, const std::string&) {
  return {[](const GraphConfig& graph) {
    const TemporaryFolder folder;
    std::int64_t tensor = 1;
    std::int64_t data = 1;
    for (const GraphAxis& axis : graph.mesh) (axis.name == "tensor" ? tensor : data) = axis.size;
    std::int64_t batch = 1;
    for (const GraphTensor& each : graph.tensors) {
      if (each.role != GraphTensorRole::kInput || !each.shape || each.shape->empty()) continue;
      batch = each.shape->front();
      break;
    }
    const std::int64_t micro_batch = std::max<std::int64_t>(1, batch / data);
    const auto file = folder.write(
        "study.yaml",
        fmt::format("cluster: {{nodes: 1, node: {{extends: dgx-h100, gpus: {}}}}}\n"
                    "graph: {{file: {}}}\nstrategy: {{tensor_parallel: {}, data_parallel: {}, "
                    "micro_batch: {}, global_batch: {}}}\n",
                    tensor * data, folder.write("graph.yaml", yaml::echo(graph)).string(), tensor,
                    data, micro_batch, micro_batch * data));
    bool refused = false;
    return study_result(file.string(), "", "", refused);
  }};
}

Probes<Hardware> probes_of(const Hardware*, const std::string&) {
  yaml::Loader loader({.catalogue = {kShipped}});
  const Hardware shipped = *read_hardware(loader);
  // What importers look up: devices by PCI id and name, sockets by processor.
  const auto lookups = [shipped](const Hardware& hardware) {
    std::string text;
    const auto tell = [&](const HardwareDevice* device) {
      text += device == nullptr
                  ? "none;"
                  : fmt::format("{} {};", device->device, device->nvlink_bandwidth().in_base());
    };
    for (const HardwareDevice& device : shipped.devices) {
      tell(hardware.find(device.device));
      for (const std::string& id : device.pci_ids)
        tell(hardware.device_of_pci_id(std::stoll(id, nullptr, 16)));
      for (const std::string& name : device.names) tell(hardware.device_of_name(name));
    }
    for (const HardwareSocket& socket : shipped.sockets) {
      for (const std::int64_t more : {-1, 0, 1}) {
        const auto* found = hardware.socket_of(
            socket.arch, socket.vendor, socket.family,
            socket.model_from ? std::optional(*socket.model_from + more) : std::nullopt);
        text += found == nullptr ? "none;" : fmt::format("{};", found->bandwidth.in_base());
      }
    }
    return text;
  };
  // What `topology check` says of clusters that break a rule each.
  const auto findings = [](const Hardware& hardware) {
    std::string text;
    const auto find = [&](auto change) {
      auto config = from_catalogue<ClusterConfig>("two-dgx-h100");
      change(config);
      const auto cluster = build_cluster(config);
      text += cluster ? to_text(implausible(config, *cluster, hardware)) : cluster.error().message;
    };
    const auto degraded = [](double factor) {
      return [factor](ClusterConfig& config) {
        config.degraded = {{.links = "node1/nic5 - switch", .factor = factor}};
      };
    };
    for (const double factor : {1.1, 1.5, 10.0, 1.0 / 160}) {
      find([&](ClusterConfig& c) { c.node->value.nics->bandwidth.value = 200_GB_s * factor; });
      find([&](ClusterConfig& c) { c.node->value.host.launch_time.value = 1_ms * factor; });
      find([&](ClusterConfig& c) { c.fabric.latency.value = 1_ms * factor; });
      find([&](ClusterConfig& c) { c.node->value.nvlink->bandwidth.value = 450_GB_s * factor; });
    }
    find([&](ClusterConfig& c) { c.node->value.nics->bandwidth.value = 1.1_Gbit_s; });
    // Two GPUs below a switch whose way to the CPU is narrower than theirs.
    for (const double factor : {0.004, 0.3, 0.45, 0.48, 0.52, 0.6, 0.9})
      find([&](ClusterConfig& c) {
        NodeConfig node;
        node.device = c.node->value.device;
        node.gpus = 2;
        node.wiring.emplace();
        node.wiring->parts = {{"socket0", WiringPartKind::kSocket, {}},
                              {"pcie0", WiringPartKind::kPcieSwitch, {}}};
        node.wiring->links = {{"gpu0", "pcie0", WiringLinkKind::kPcie, 64_GB_s},
                              {"gpu1", "pcie0", WiringLinkKind::kPcie, 64_GB_s},
                              {"pcie0", "socket0", WiringLinkKind::kPcie, 64_GB_s * factor}};
        c = cluster_of(1, std::move(node));
      });
    for (const double factor : {0.04, 0.055, 0.06, 3e-4, 1e-4, 1.5e-4}) find(degraded(factor));
    for (const double ratio : {7.9, 8.1, 9.0, 12.0})
      find([&](ClusterConfig& c) {
        c.nodes = 32;
        c.fabric.kind = "rail-fat-tree";
        c.fabric.levels = 2;
        c.fabric.nodes_per_pod = 16;
        c.fabric.oversubscription = {ratio};
      });
    for (const std::int64_t nodes : {125, 143, 145, 200, 600})
      find([&](ClusterConfig& c) { c.nodes = nodes; });
    return text;
  };
  return {lookups, findings};
}

Probes<accuracy::Exclusions> probes_of(const accuracy::Exclusions*, const std::string&) {
  const auto shipped = *yaml::Loader({.catalogue = {kShipped}})
                            .read_file<accuracy::Exclusions>(std::string(kShipped) +
                                                             "/accuracy/excluded-collectives.yaml");
  return {[shipped](const accuracy::Exclusions& exclusions) {
    std::string text;
    for (const auto& each : shipped.rows) {
      for (const double factor : {0.2, 0.9, 1.1, 3.0}) {
        const auto* reason = exclusions.reason_for({.source = each.source + "@1",
                                                    .op = each.operation,
                                                    .bytes = each.below.in_base() * factor});
        text += reason == nullptr ? "scored;" : reason->reason;
      }
    }
    return text;
  }};
}

Probes<profile::KernelNames> probes_of(const profile::KernelNames*, const std::string& name) {
  const auto shipped =
      *yaml::Loader({.catalogue = {kShipped}})
           .read_file<profile::KernelNames>(std::string(kShipped) + "/profiles/" + name + ".yaml");
  const auto written = [](const profile::KernelName* line) {
    if (line == nullptr) return std::string("-");
    std::string text;
    for (const std::string& kind : line->kinds) text += kind + ",";
    text += line->dtype.value_or("-");
    text += line->accumulate ? std::to_string(static_cast<int>(*line->accumulate)) : "-";
    text += line->batched ? std::to_string(static_cast<int>(*line->batched)) : "-";
    return text + (line->part ? std::string(yaml::name_of(*line->part)) : "-") + ";";
  };
  // A name that the pattern fits: its stars stand for a letter that no pattern has.
  const auto example = [](std::string pattern) {
    std::ranges::replace(pattern, '*', '~');
    return pattern;
  };
  return {[shipped, written, example](const profile::KernelNames& names) {
    std::string text;
    for (const auto& line : shipped.kernels) text += written(names.kernel(example(line.name)));
    for (const auto& line : shipped.ranges) {
      const auto* range = names.range(example(line.name));
      text += range == nullptr ? "-" : std::string(yaml::name_of(range->phase)) + ";";
    }
    return text;
  }};
}

std::string study_result(const std::string& file, const std::string& path, const std::string& value,
                         bool& refused) {
  yaml::Options options{.catalogue = {kShipped}};
  if (!path.empty()) options.overrides = {{path, value}};
  const auto study = study::load_study({.study = file}, std::move(options));
  refused = !study;
  if (!study) return study.error().message;
  auto run = study::run_study(*study, {});
  refused = !run;
  if (!run) return run.error().message;
  const std::string program = program::to_json(run->program);
  auto report = report::report_of(*study, *std::move(run));
  report.inputs.clear();
  return report::to_text(report) + report::to_json(report) + program;
}

}  // namespace foreshard
