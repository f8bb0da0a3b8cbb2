// checkpoint_bench [--size '2 GiB'] [--folder /tmp] [--memory '256 MiB'] [--rounds 3]
//                  [--most-ratio 2]
//
// Benchmark of the conversion of a checkpoint (strategies/checkpoint/convert.h) against a plain
// copy. The checkpoint is synthetic: --size bytes, written for 8-way tensor parallelism. Each of
// --rounds rounds copies its files and then converts them to 4-way tensor parallelism in each of 2
// pipeline stages. Copy and conversion use equally many threads, take a digest of every file and
// flush it, and each runs in a process of its own. Prints the fastest time of each, their ratio and
// the peak of resident memory; fails (exit 4) if the ratio exceeds --most-ratio, or if the peak
// exceeds the limit of the conversion, --memory, by more than 64 MiB. Source, copy and target lie
// in one temporary folder under --folder, which is removed at the end.
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

// The tensors of a model: four matrices and two norms per layer, with tensor parallelism of size
// `tensor_parallel` as in Megatron-LM, the layers divided over `stages` pipeline stages.
std::vector<TensorEntry> transformer(std::int64_t layers, std::int64_t tensor_parallel,
                                     std::int64_t stages) {
  std::vector<TensorEntry> tensors;
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    const auto stage = layer * stages / layers;
    // Axis 0, "tensor", splits the columns of one layout and the rows of another.
    const Layout by_columns{.mesh = mesh_from({{"tensor", tensor_parallel}},
                                              static_cast<std::int32_t>(stage * tensor_parallel)),
                            .attribute = {.dims = {{}, {0}}}};
    Layout by_rows = by_columns;
    by_rows.attribute.dims = {{0}, {}};
    Layout unsplit = by_columns;
    unsplit.attribute.dims = {{}};
    const auto add = [&](const char* name, Shape shape, const Layout& layout) {
      tensors.push_back({.name = fmt::format("layers.{}.{}.weight", layer, name),
                         .type = ElementType::kBf16,
                         .shape = std::move(shape),
                         .layout = layout});
    };
    add("qkv", {kHidden, 3 * kHidden}, by_columns);
    add("attention_out", {kHidden, kHidden}, by_rows);
    add("mlp_up", {kHidden, 4 * kHidden}, by_columns);
    add("mlp_down", {4 * kHidden, kHidden}, by_rows);
    add("attention_norm", {kHidden}, unsplit);
    add("mlp_norm", {kHidden}, unsplit);
  }
  return tensors;
}

struct Measurement {
  bool succeeded = false;
  Seconds time{};  // wall-clock time
  Bytes peak{};    // of resident memory
};

// Runs `work` in a child process.
template <class Work>
Measurement timed(const Work& work) {
  ::sync();
  std::fflush(nullptr);
  const auto begin = std::chrono::steady_clock::now();
  const pid_t child = ::fork();
  if (child == 0) {
    const Status result = work();
    if (!result.ok()) fmt::print(stderr, "{}\n", result.error().message);
    ::_exit(result.ok() ? 0 : 1);
  }
  int status = 0;
  rusage usage{};
  const bool was_run = ::wait4(child, &status, 0, &usage) == child;  // no child: fork failed
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - begin;
  return {.succeeded = was_run && status == 0,
          .time = time.count() * 1_s,
          .peak = static_cast<double>(usage.ru_maxrss) * 1_KiB};
}

// Copies the files of `source` as the conversion would write them: OutputFile takes the digest and
// flushes. Nothing is verified.
Status copy_all(const Source& source, const fs::path& to, std::int32_t threads) {
  fs::create_directory(to);
  std::atomic<std::size_t> next{0};
  std::mutex failing;
  Status failure;  // of one of the threads that failed, if any did
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
      if (const Status result = work(); !result.ok()) {
        const std::scoped_lock lock(failing);
        failure = result;
      }
    });
  workers.clear();
  return failure;
}

struct Options {
  Bytes size = 2_GiB;
  fs::path folder = fs::temp_directory_path();
  Bytes memory = 256_MiB;  // limit of the conversion
  int rounds = 3;
  double most_ratio = 2;  // largest accepted time of a conversion, in times of a copy
};

int fail(const Error& error) {
  fmt::print(stderr, "{}\n", error.message);
  return 1;
}

constexpr std::uint64_t kSeed = 1;  // of the synthetic contents

int measure(const Options& options, const fs::path& folder) {
  const Bytes bytes_per_layer = 2.0 * (12 * kHidden * kHidden + 2 * kHidden) * 1_B;
  const auto layers = std::max<std::int64_t>(kStages, std::llround(options.size / bytes_per_layer));
  if (const Status error = write_synthetic(folder / "source", FileFormat::kSafetensors,
                                           transformer(layers, 8, 1), kSeed);
      !error.ok())
    return fail(error.error());
  auto source = open_source(folder / "source");
  if (!source) return fail(source.error());
  auto plan = plan_conversion(*source, {.tensors = transformer(layers, 4, kStages)});
  if (!plan) return fail(plan.error());
  const auto threads =
      static_cast<std::int32_t>(std::clamp(std::thread::hardware_concurrency(), 1U, 8U));

  Measurement best_copy{.time = 1e9 * 1_s};
  Measurement best_conversion{.time = 1e9 * 1_s};  // `peak`: the largest of all rounds
  for (int round = 0; round < options.rounds; ++round) {
    const Measurement copy = timed([&] { return copy_all(*source, folder / "copy", threads); });
    fs::remove_all(folder / "copy");
    fs::remove_all(folder / "target");
    const Measurement conversion = timed([&]() -> Status {
      const auto result =
          convert(*plan, folder / "target", {.max_memory = options.memory, .threads = threads});
      if (!result) return result.error();
      return {};
    });
    if (!copy.succeeded || !conversion.succeeded) return 1;
    fmt::print("round {}: copy {}, convert {}\n", round + 1, format(copy.time),
               format(conversion.time));
    best_copy.time = std::min(best_copy.time, copy.time);
    best_conversion.time = std::min(best_conversion.time, conversion.time);
    best_conversion.peak = std::max(best_conversion.peak, conversion.peak);
  }
  const auto target = open_source(folder / "target");
  if (!target) return fail(target.error());
  if (const Status error = check_synthetic(*target, kSeed); !error.ok()) return fail(error.error());

  const double ratio = best_conversion.time / best_copy.time;
  const Bytes written = static_cast<double>(plan->bytes_to_write) * 1_B;
  fmt::print(
      "tensor 8 -> tensor 4 x pipeline 2, {}: copy {}, convert {}: ratio {:.2f} (at most "
      "{:.2f})\n",
      format(written), format(best_copy.time), format(best_conversion.time), ratio,
      options.most_ratio);
  fmt::print("peak resident memory {} (limit {} + 64 MiB); contents are right\n",
             format(best_conversion.peak), format(options.memory));
  constexpr int kGateFailed = 4;
  return ratio <= options.most_ratio && best_conversion.peak <= options.memory + 64_MiB
             ? 0
             : kGateFailed;
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
  const int rc = measure(options, name);
  fs::remove_all(name);
  return rc;
}

}  // namespace
}  // namespace foreshard::checkpoint

int main(int argc, char** argv) {
  return foreshard::checkpoint::run(argc, argv);
}
