// checkpoint_bench [--size '2 GiB'] [--folder /tmp] [--memory '256 MiB'] [--rounds 3]
//                  [--most-ratio 2]
//
// Converts a checkpoint on disk from 8-way tensor parallelism to 4-way in 2 pipeline stages. In
// turns with that, copies the same bytes with the same number of threads, a digest and a flush of
// every file. Each runs in a process of its own. Prints the ratio of the fastest times and the peak
// of resident memory; fails (exit 4) if the ratio is above --most-ratio or the memory above the
// limit by 64 MiB. The source, the copy and the target lie in a folder of their own, which is
// removed at the end.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fmt/format.h>
#include <mutex>
#include <optional>
#include <sys/resource.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include "base/quantity.h"
#include "tests/strategies/checkpoint/synthetic.h"

#include "strategies/checkpoint/convert.h"
#include "strategies/checkpoint/files.h"

namespace foreshard::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kHidden = 2048;
constexpr std::int64_t kStages = 2;

// The four matrices and two norms of a layer, split as Megatron-LM does.
std::vector<TensorEntry> transformer(std::int64_t layers, std::int64_t ways, std::int64_t stages) {
  std::vector<TensorEntry> tensors;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const auto stage = layer * stages / layers;
    const Layout columns{
        .mesh = mesh_from({{"tensor", ways}}, static_cast<std::int32_t>(stage * ways)),
        .attribute = {.dims = {{}, {0}}}};
    Layout rows = columns;
    rows.attribute.dims = {{0}, {}};
    Layout whole = columns;
    whole.attribute.dims = {{}};
    const auto add = [&](const char* name, Shape shape, const Layout& layout) {
      tensors.push_back({.name = fmt::format("layers.{}.{}.weight", layer, name),
                         .type = ElementType::kBf16,
                         .shape = std::move(shape),
                         .layout = layout});
    };
    add("qkv", {kHidden, 3 * kHidden}, columns);
    add("attention_out", {kHidden, kHidden}, rows);
    add("mlp_up", {kHidden, 4 * kHidden}, columns);
    add("mlp_down", {4 * kHidden, kHidden}, rows);
    add("attention_norm", {kHidden}, whole);
    add("mlp_norm", {kHidden}, whole);
  }
  return tensors;
}

struct Run {
  bool done = false;
  Seconds time{};
  Bytes peak{};
};

template <class Work>
Run timed(const Work& work) {
  ::sync();
  std::fflush(nullptr);
  const auto begin = std::chrono::steady_clock::now();
  const pid_t child = ::fork();
  if (child == 0) {
    const Status error = work();
    if (!error.ok()) fmt::print(stderr, "{}\n", error.error().message);
    ::_exit(error.ok() ? 0 : 1);
  }
  int status = 0;
  rusage usage{};
  ::wait4(child, &status, 0, &usage);
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
  return {.done = status == 0,
          .time = time.count() * 1_s,
          .peak = static_cast<double>(usage.ru_maxrss) * 1_KiB};
}

// Copies the same files with the same digest and flush; nothing is verified.
Status copy_all(const Source& source, const fs::path& to, std::int32_t threads) {
  fs::create_directory(to);
  std::atomic<std::size_t> next{0};
  std::mutex failing;
  Status first;
  const auto work = [&]() -> Status {
    std::vector<char> block(std::size_t{4} << 20);
    for (std::size_t i = next++; i < source.files.size(); i = next++) {
      FORESHARD_ASSIGN(const auto input, InputFile::open(source.files[i].path));
      FORESHARD_ASSIGN(OutputFile output, OutputFile::create(to / source.files[i].path.filename()));
      while (output.bytes() < input.bytes()) {
        const auto rest = static_cast<std::size_t>(input.bytes() - output.bytes());
        const auto piece = std::span(block).first(std::min(block.size(), rest));
        FORESHARD_TRY(input.read(output.bytes(), piece));
        FORESHARD_TRY(output.append({piece.data(), piece.size()}));
      }
      FORESHARD_TRY(output.finish());
    }
    return flush_directory(to);
  };
  std::vector<std::jthread> workers;
  workers.reserve(static_cast<std::size_t>(threads));
  for (std::int32_t t = 0; t < threads; ++t)
    workers.emplace_back([&] {
      if (const Status error = work(); !error.ok()) {
        const std::scoped_lock lock(failing);
        first = error;
      }
    });
  workers.clear();
  return first;
}

struct Options {
  Bytes size = 2_GiB;
  fs::path folder = fs::temp_directory_path();
  Bytes memory = 256_MiB;
  int rounds = 3;
  double most_ratio = 2;
};

int fail(const Error& error) {
  fmt::print(stderr, "{}\n", error.message);
  return 1;
}

int run(const Options& options, const fs::path& folder) {
  const Bytes of_layer = 2.0 * (12 * kHidden * kHidden + 2 * kHidden) * 1_B;
  const auto layers = std::max<std::int64_t>(kStages, std::llround(options.size / of_layer));
  if (const Status error = write_synthetic(folder / "source", FileFormat::kSafetensors,
                                           transformer(layers, 8, 1), 1);
      !error.ok())
    return fail(error.error());
  auto source = open_source(folder / "source");
  if (!source) return fail(source.error());
  auto plan = plan_conversion(*source, {.tensors = transformer(layers, 4, kStages)});
  if (!plan) return fail(plan.error());
  const auto threads =
      static_cast<std::int32_t>(std::clamp(std::thread::hardware_concurrency(), 1U, 8U));

  Run copy{.time = 1e9 * 1_s};
  Run converted{.time = 1e9 * 1_s};
  for (int round = 0; round < options.rounds; ++round) {
    const Run a = timed([&] { return copy_all(*source, folder / "copy", threads); });
    fs::remove_all(folder / "copy");
    fs::remove_all(folder / "target");
    const Run b = timed([&]() -> Status {
      const auto result =
          convert(*plan, folder / "target", {.max_memory = options.memory, .threads = threads});
      if (!result) return result.error();
      return {};
    });
    if (!a.done || !b.done) return 1;
    fmt::print("round {}: copy {}, convert {}\n", round + 1, format(a.time), format(b.time));
    copy.time = std::min(copy.time, a.time);
    converted.time = std::min(converted.time, b.time);
    converted.peak = std::max(converted.peak, b.peak);
  }
  const auto target = open_source(folder / "target");
  if (!target) return fail(target.error());
  if (const Status error = check_synthetic(*target, 1); !error.ok()) return fail(error.error());

  const double ratio = converted.time / copy.time;
  const Bytes written = static_cast<double>(plan->bytes_to_write) * 1_B;
  fmt::print(
      "tensor 8 -> tensor 4 x pipeline 2, {}: copy {}, convert {}: ratio {:.2f} (at most "
      "{:.2f})\n",
      format(written), format(copy.time), format(converted.time), ratio, options.most_ratio);
  fmt::print("peak resident memory {} (limit {} + 64 MiB); contents are right\n",
             format(converted.peak), format(options.memory));
  constexpr int kGateFailed = 4;
  return ratio <= options.most_ratio && converted.peak <= options.memory + 64_MiB ? 0 : kGateFailed;
}

std::optional<Options> options_from(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 == argc) return std::nullopt;
    const std::string_view name = argv[i];
    const std::string value = argv[i + 1];
    if (name == "--size" || name == "--memory") {
      const auto bytes = parse<Bytes>(value);
      if (!bytes || *bytes <= 0_B) return std::nullopt;
      (name == "--size" ? options.size : options.memory) = *bytes;
    } else if (name == "--folder") {
      options.folder = value;
    } else if (name == "--rounds") {
      options.rounds = std::atoi(value.c_str());
    } else if (name == "--most-ratio") {
      options.most_ratio = std::atof(value.c_str());
    } else {
      return std::nullopt;
    }
  }
  if (options.rounds < 1 || options.most_ratio <= 0) return std::nullopt;
  return options;
}

int run(int argc, char** argv) {
  const auto given = options_from(argc, argv);
  if (!given) {
    fmt::print(stderr,
               "usage: checkpoint_bench [--size '2 GiB'] [--folder /tmp] [--memory '256 MiB'] "
               "[--rounds 3] [--most-ratio 2]\n");
    return 2;
  }
  const Options& options = *given;
  std::string name = (options.folder / "foreshard-bench-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) {
    fmt::print(stderr, "{}: {}\n", options.folder.string(), std::strerror(errno));
    return 1;
  }
  const int rc = run(options, name);
  fs::remove_all(name);
  return rc;
}

}  // namespace
}  // namespace foreshard::checkpoint

int main(int argc, char** argv) {
  return foreshard::checkpoint::run(argc, argv);
}
