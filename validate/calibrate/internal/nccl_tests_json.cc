#include "validate/calibrate/internal/nccl_tests_json.h"

#include <array>
#include <cmath>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/json.h"
#include "base/text.h"

namespace foreshard::calibrate::internal {
namespace {

using Json = nlohmann::json;

constexpr std::int64_t kMostRanks = 1 << 20;

class Reader {
 public:
  Reader(const Json& root, std::string_view name, std::string_view told)
      : root_(root), name_(name), told_(told) {}

  Result<NcclTestsRun> run() {
    for (const auto part : {&Reader::read_head, &Reader::read_ranks, &Reader::read_rows})
      FORESHARD_TRY((this->*part)());
    return std::move(run_);
  }

 private:
  Error fault(const std::string& place, const std::string& why,
              Error::Code code = Error::Code::kInvalidInput) const {
    return {code, fmt::format("{}: {}: {}", name_, place, why)};
  }
  static const Json* member(const Json& object, const char* key) {
    if (!object.is_object()) return nullptr;
    const auto found = object.find(key);
    return found == object.end() ? nullptr : &*found;
  }
  static std::optional<double> number(const Json* value) {
    if (value == nullptr || !value->is_number()) return std::nullopt;
    const double read = value->get<double>();
    if (!std::isfinite(read)) return std::nullopt;
    return read;
  }
  static std::optional<std::int64_t> count(const Json* value, std::int64_t most) {
    const auto read = number(value);
    if (!read || *read < 0 || *read > static_cast<double>(most) || *read != std::floor(*read))
      return std::nullopt;
    return static_cast<std::int64_t>(*read);
  }
  static std::optional<std::string> text(const Json* value) {
    if (value == nullptr || !value->is_string()) return std::nullopt;
    return value->get<std::string>();
  }

  Status read_head() {
    const auto version = count(member(root_, "version"), 1000);
    if (!version) return fault("version", "missing: nccl-tests writes 1 or 2 there");
    if (*version < 1 || *version > 2)
      return fault("version", fmt::format("{} is not known; 1 and 2 are", *version),
                   Error::Code::kUnsupported);
    if (const auto code = count(member(root_, "nccl_version"), 1'000'000))
      run_.nccl_version = version_of(*code);
    if (const Json* args = member(root_, "args"); args != nullptr && args->is_array())
      for (const Json& argument : *args) {
        const auto word = text(&argument);
        if (word && run_.operation.empty())
          run_.operation = operation_in(std::string_view(*word).substr(
              word->rfind('/') == std::string::npos ? 0 : word->rfind('/') + 1));
      }
    if (const auto why =
            fault_in_operation(told_, name_.substr(name_.rfind('/') + 1), run_.operation))
      return fault("args", *why);
    return {};
  }

  // One device is listed per process, which has nthreads x ngpus of them (util.cu).
  Status read_ranks() {
    const Json* config = member(root_, "config");
    if (config == nullptr) return fault("config", "missing");
    const auto threads = count(member(*config, "nthreads"), kMostRanks);
    const auto gpus = count(member(*config, "ngpus"), kMostRanks);
    if (!threads || *threads < 1) return fault("config.nthreads", "must be a count");
    if (!gpus || *gpus < 1) return fault("config.ngpus", "must be a count");
    const Json* devices = member(*config, "devices");
    if (devices == nullptr || !devices->is_array() || devices->empty())
      return fault("config.devices", "must be a list of devices");
    const auto processes = static_cast<std::int64_t>(devices->size());
    if (*threads > kMostRanks / *gpus || *threads * *gpus > kMostRanks / processes)
      return fault("config", "too many ranks");
    for (std::size_t p = 0; p < devices->size(); ++p) {
      const Json& device = (*devices)[p];
      const auto host = text(member(device, "hostname"));
      const auto info = text(member(device, "device_info"));
      if (!host || !info)
        return fault(fmt::format("config.devices[{}]", p), "needs hostname and device_info");
      const auto group = member(device, "group");
      if (group != nullptr && count(group, kMostRanks).value_or(1) != 0)
        return fault(fmt::format("config.devices[{}].group", p),
                     "several groups ran at the same time (NCCL_TESTS_SPLIT): their times are not "
                     "those of one",
                     Error::Code::kUnsupported);
      for (std::int64_t i = 0; i < *threads * *gpus; ++i)
        run_.ranks.push_back(
            {.rank = static_cast<std::int64_t>(run_.ranks.size()), .host = *host, .device = *info});
    }
    return {};
  }

  Status read_rows() {
    const Json* results = member(root_, "results");
    if (results == nullptr || !results->is_array() || results->empty())
      return fault("results", "must be a list with at least one result");
    for (std::size_t r = 0; r < results->size(); ++r) {
      const Json& result = (*results)[r];
      const std::string place = fmt::format("results[{}]", r);
      const auto size = count(member(result, "size"), std::int64_t{1} << 52);
      if (!size) return fault(place + ".size", "must be a number of bytes");
      const auto dtype = text(member(result, "type"));
      if (!dtype) return fault(place + ".type", "must be a name");
      NcclTestsRow row{.line = r + 1,
                       .size = static_cast<double>(*size) * 1_B,
                       .dtype = *dtype,
                       .reduction = text(member(result, "redop")).value_or(""),
                       .out_of_place = {},
                       .in_place = {}};
      const std::array ways{std::pair{"out_of_place", &row.out_of_place},
                            std::pair{"in_place", &row.in_place}};
      for (const auto& [key, way] : ways) {
        const Json* value = member(result, key);
        if (value == nullptr || value->is_null()) continue;
        FORESHARD_TRY(read_way(*value, place + "." + key, *way));
      }
      if (!row.out_of_place && !row.in_place)
        return fault(place, "has neither out_of_place nor in_place");
      run_.rows.push_back(std::move(row));
    }
    return {};
  }

  Status read_way(const Json& value, const std::string& place,
                  std::optional<NcclTestsTime>& way) const {
    if (member(value, "cpu_time") != nullptr)
      return fault(place + ".cpu_time", "times of the CPU (-C) are not those of the operation",
                   Error::Code::kUnsupported);
    const auto time = number(member(value, "time"));
    if (!time || *time < 0) return fault(place + ".time", "must be a time in us");
    way = NcclTestsTime{.time = *time * 1_us, .wrong = {}};
    const Json* wrong = member(value, "nwrong");
    if (wrong == nullptr || wrong->is_null()) return {};
    const auto elements = count(wrong, std::int64_t{1} << 52);
    if (!elements) return fault(place + ".nwrong", "must be a count or null");
    if (*elements > 0)
      return fault(place + ".nwrong",
                   fmt::format("{} wrong elements: its times do not count", *elements),
                   Error::Code::kUnsupported);
    way->wrong = *elements;
    return {};
  }

  const Json& root_;
  std::string_view name_;
  std::string_view told_;
  NcclTestsRun run_;
};

}  // namespace

std::string operation_in(std::string_view name) {
  // Words in names of programs and files, without "_" and "-". "alltoallv" is another operation
  // than "alltoall" and is not supported.
  constexpr std::array<std::pair<std::string_view, std::string_view>, 9> kPrograms{
      {{"allreduce", "all_reduce"},
       {"allgather", "all_gather"},
       {"reducescatter", "reduce_scatter"},
       {"alltoallv", ""},
       {"alltoall", "alltoall"},
       {"all2all", "alltoall"},
       {"broadcast", "broadcast"},
       {"bcast", "broadcast"},
       {"sendrecv", "sendrecv"}}};
  std::string plain = lower_case(name);
  std::erase_if(plain, [](char c) { return c == '_' || c == '-'; });
  for (const auto& [word, operation] : kPrograms)
    if (plain.find(word) != std::string::npos) return std::string(operation);
  return {};
}

std::optional<std::string> fault_in_operation(std::string_view told, std::string_view file_name,
                                              std::string& operation) {
  if (!told.empty() && !operation.empty() && told != operation)
    return fmt::format("the text says {}, not {} as --op does", operation, told);
  if (operation.empty()) operation = told;
  if (operation.empty()) operation = operation_in(file_name);
  if (!operation.empty()) return std::nullopt;
  return "the operation is named neither in the text nor in the file's name: give --op, such as "
         "--op all_reduce, or put the program's name into the latter: all_reduce_perf.txt";
}

std::string version_of(std::int64_t code) {
  if (code >= 10000) return fmt::format("{}.{}.{}", code / 10000, code / 100 % 100, code % 100);
  return fmt::format("{}.{}.{}", code / 1000, code / 100 % 10, code % 100);
}

Result<NcclTestsRun> read_nccl_tests_json(std::string_view text, std::string_view name,
                                          std::string_view operation) {
  const auto root = parsed_json(text);
  if (!root)
    return Error{Error::Code::kInvalidInput, fmt::format("{}: {}", name, root.error().message)};
  return Reader(*root, name, operation).run();
}

}  // namespace foreshard::calibrate::internal
