#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <functional>
#include <map>
#include <set>

#include "base/check.h"
#include "base/digest/sha256.h"
#include "base/limits.h"

#include "strategies/checkpoint/convert.h"
#include "strategies/checkpoint/files.h"
#include "strategies/checkpoint/internal/gather.h"
#include "strategies/checkpoint/safetensors.h"

namespace foreshard::checkpoint {
namespace {

std::string shape_text(const TensorEntry& tensor) {
  return fmt::format("{}[{}]", name_of(tensor.type), fmt::join(tensor.shape, ","));
}

// Why `to` cannot be made from `from`; nothing if it can.
std::optional<std::string> mismatch(const TensorEntry& from, const TensorEntry& to) {
  if (from.type != to.type)
    return fmt::format(
        "is {} in the source and {} in the target; a conversion does not change "
        "the type of elements",
        shape_text(from), shape_text(to));
  if (from.shape != to.shape && from.logical() != to.logical())
    return fmt::format("is {} in the source and {} in the target, without padding [{}] and [{}]",
                       shape_text(from), shape_text(to), fmt::join(from.logical(), ","),
                       fmt::join(to.logical(), ","));
  return std::nullopt;
}

std::string interval_text(const Box& box) {
  std::vector<std::string> ranges;
  for (std::size_t d = 0; d < box.begin.size(); ++d)
    ranges.push_back(fmt::format("{}:{}", box.begin[d], box.end[d]));
  return fmt::format("[{}]", fmt::join(ranges, ", "));
}

class Planner {
 public:
  Planner(Source source, Target target)
      : plan_{.source = std::move(source), .target = std::move(target)} {}

  Result<ConversionPlan> run() {
    FORESHARD_TRY(match());
    FORESHARD_TRY(place());
    FORESHARD_TRY(locate());
    for (TargetFile& file : plan_.files) finish(file);
    for (const std::int32_t index : plan_.files_read) {
      const SourceFile& file = plan_.source.files[static_cast<std::size_t>(index)];
      if (!file.sha256.empty()) plan_.bytes_to_verify += file.bytes;
    }
    plan_.identity = identity();
    return std::move(plan_);
  }

 private:
  Status match() {
    std::map<std::string_view, std::int32_t> sources;
    for (const SourceTensor& tensor : plan_.source.tensors)
      sources.emplace(tensor.entry.name, static_cast<std::int32_t>(sources.size()));
    std::set<std::string_view> placed(plan_.target.left_out.begin(), plan_.target.left_out.end());
    for (const TensorEntry& tensor : plan_.target.tensors) {
      if (const auto why = fault_in(tensor)) return fault("tensor '" + tensor.name + "': " + *why);
      const auto it = sources.find(tensor.name);
      if (it == sources.end())
        return fault(fmt::format("{}: has no tensor '{}', which the target wants",
                                 plan_.source.directory.string(), tensor.name));
      if (const auto why = mismatch(source_of(it->second).entry, tensor))
        return fault("tensor '" + tensor.name + "' " + *why);
      plan_.source_tensors.push_back(it->second);
      placed.insert(tensor.name);
    }
    for (const SourceTensor& tensor : plan_.source.tensors)
      if (!placed.contains(tensor.entry.name))
        return fault(fmt::format("{}: tensor '{}' has no place in the target",
                                 plan_.source.directory.string(), tensor.entry.name));
    return {};
  }

  // Assigns slices to ranks, by rank number and slice index. In safetensors files, slices
  // with larger elements come first, so that all are aligned.
  Status place() {
    std::int64_t slices_in_all = 0;
    for (const TensorEntry& tensor : plan_.target.tensors)
      slices_in_all += tensor.layout.mesh.size();
    if (const std::int64_t most = limits::raised(limits::kSlices); slices_in_all > most)
      return fault(
          fmt::format("the target has {} slices, more than the {} that a checkpoint may "
                      "have; {}",
                      slices_in_all, most, limits::kRemedy));
    std::map<std::int32_t, std::vector<TargetFile::Slice>> of_rank;
    for (std::size_t t = 0; t < plan_.target.tensors.size(); ++t) {
      const TensorEntry& tensor = plan_.target.tensors[t];
      const auto& ranks = tensor.layout.mesh.ranks;
      for (std::size_t p = 0; p < ranks.size(); ++p)
        of_rank[ranks[p]].push_back(
            {.tensor = static_cast<std::int32_t>(t),
             .box = slice_of(tensor.layout, tensor.shape, static_cast<std::int64_t>(p))});
    }
    for (auto& [rank, slices] : of_rank) {
      if (plan_.target.format == FileFormat::kSafetensors)
        std::ranges::stable_sort(slices, std::greater<>{}, [&](const TargetFile::Slice& slice) {
          return size_of(plan_.target.tensors[static_cast<std::size_t>(slice.tensor)].type);
        });
      plan_.files.push_back({.rank = rank, .slices = std::move(slices)});
    }
    return {};
  }

  // Finds the source files that are needed, and checks that all slices are there.
  Status locate() {
    std::set<std::int32_t> read;
    for (std::size_t t = 0; t < plan_.target.tensors.size(); ++t) {
      const SourceTensor& source = source_of(plan_.source_tensors[t]);
      for (const auto& slice : internal::distinct_slices(source)) {
        if (slice.location.file < 0)
          return fault(fmt::format(
              "{}: elements {} of tensor '{}' are lost: no rank but those "
              "without a file had them",
              plan_.source.directory.string(), interval_text(slice.box), source.entry.name));
        read.insert(slice.location.file);
      }
    }
    plan_.files_read.assign(read.begin(), read.end());
    return {};
  }

  void finish(TargetFile& file) {
    std::vector<StoredTensor> stored;
    for (const TargetFile::Slice& slice : file.slices) {
      const TensorEntry& tensor = plan_.target.tensors[static_cast<std::size_t>(slice.tensor)];
      StoredTensor one{.name = tensor.name, .type = tensor.type};
      for (std::size_t d = 0; d < slice.box.begin.size(); ++d)
        one.shape.push_back(slice.box.end[d] - slice.box.begin[d]);
      file.bytes += *bytes_of(one.type, one.shape);
      stored.push_back(std::move(one));
    }
    if (plan_.target.format == FileFormat::kSafetensors) {
      file.header = safetensors_header(stored, {});
      file.bytes += static_cast<std::int64_t>(file.header.size());
    }
    plan_.bytes_to_write += file.bytes;
  }

  std::string identity() const {
    const Manifest manifest{.format = plan_.target.format,
                            .origin = plan_.target.origin,
                            .tensors = plan_.target.tensors};
    return sha256(plan_.source.identity + to_json(manifest) +
                  fmt::format("{}", fmt::join(plan_.target.left_out, "\n")));
  }

  const SourceTensor& source_of(std::int32_t index) const {
    return plan_.source.tensors[static_cast<std::size_t>(index)];
  }

  ConversionPlan plan_;
};

}  // namespace

Result<ConversionPlan> plan_conversion(Source source, Target target) {
  return Planner(std::move(source), std::move(target)).run();
}

std::string shard_name(std::int32_t rank, FileFormat format) {
  return fmt::format("rank-{:05}.{}", rank,
                     format == FileFormat::kSafetensors ? "safetensors" : "bin");
}

std::filesystem::path partial_of(const std::filesystem::path& out) {
  std::filesystem::path path = out;
  path += ".partial";
  return path;
}

}  // namespace foreshard::checkpoint
