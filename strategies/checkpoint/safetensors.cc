// Headers of safetensors files, read for source.cc and written for plan.cc, which have the file's
// name: faults here begin without it. Offsets are bytes from the first byte of the data, shapes are
// elements. A tensor with a zero extent has no bytes; a header "{}" before no data is legal.
#include "strategies/checkpoint/safetensors.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "base/check.h"
#include "base/limits.h"
#include "base/text.h"

#include "strategies/checkpoint/files.h"

namespace foreshard::checkpoint {
namespace {

struct TypeRow {
  ElementType type;
  std::string_view name;
  std::int64_t size;  // Bytes of an element.
};

constexpr std::array<TypeRow, 15> kTypes{{
    // in the order of ElementType
    {ElementType::kBool, "BOOL", 1},
    {ElementType::kU8, "U8", 1},
    {ElementType::kI8, "I8", 1},
    {ElementType::kF8E5M2, "F8_E5M2", 1},
    {ElementType::kF8E4M3, "F8_E4M3", 1},
    {ElementType::kI16, "I16", 2},
    {ElementType::kU16, "U16", 2},
    {ElementType::kF16, "F16", 2},
    {ElementType::kBf16, "BF16", 2},
    {ElementType::kI32, "I32", 4},
    {ElementType::kU32, "U32", 4},
    {ElementType::kF32, "F32", 4},
    {ElementType::kF64, "F64", 8},
    {ElementType::kI64, "I64", 8},
    {ElementType::kU64, "U64", 8},
}};

const TypeRow& row_of(ElementType type) {
  const auto index = static_cast<std::size_t>(type);
  FORESHARD_CHECK(index < kTypes.size() && kTypes[index].type == type);
  return kTypes[index];
}

std::string shown(std::string_view text) {
  constexpr std::size_t kMost = 80;
  return text.size() <= kMost ? std::string(text) : std::string(text.substr(0, kMost)) + "...";
}

// Where the reader is in the header. It decides which events are legal.
enum class ReaderState : std::uint8_t {
  kStart,
  kTop,            // in the header's object
  kTensor,         // in a tensor's object
  kMetadata,       // in __metadata__
  kDtype,          // a value must follow
  kShape,          // in the array, or before it
  kOffsets,        // in the array, or before it
  kMetadataValue,  // a value must follow
  kEnd,
};

// Reads event by event, so that no tree of a header of 100 MB is ever in memory, and a key that
// occurs twice is noticed (a tree would keep only the last value).
class HeaderReader final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit HeaderReader(SafetensorsHeader& header) : header_(header) {}

  const std::string& why() const { return why_; }

  bool null() override { return unexpected("null"); }
  bool boolean(bool) override { return unexpected("true or false"); }
  bool number_float(double, const std::string& text) override {
    return unexpected("the number " + text);
  }
  bool binary(binary_t&) override { return unexpected("bytes"); }

  bool number_integer(std::int64_t value) override {
    return unexpected(fmt::format("the number {}", value));
  }
  bool number_unsigned(std::uint64_t value) override {
    if (!in_array_) return unexpected(fmt::format("the number {}", value));
    if (value > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
      return refuse(fmt::format("tensor '{}': {} is too large", shown(name_), value));
    numbers_.push_back(static_cast<std::int64_t>(value));
    constexpr std::size_t kMostDimensions = 64;
    if (numbers_.size() > kMostDimensions)
      return refuse(fmt::format("tensor '{}' has more than {} dimensions or offsets", shown(name_),
                                kMostDimensions));
    return true;
  }

  bool string(std::string& text) override {
    if (at_ == ReaderState::kDtype) {
      const auto type = element_type_named(text);
      if (!type)
        return refuse(fmt::format("tensor '{}' has the unknown dtype '{}'; known are {}",
                                  shown(name_), shown(text), join(element_type_names())));
      tensor_.type = *type;
      at_ = ReaderState::kTensor;
      return true;
    }
    if (at_ == ReaderState::kMetadataValue) {
      header_.metadata[key_] = text;
      at_ = ReaderState::kMetadata;
      return true;
    }
    return unexpected("the text '" + shown(text) + "'");
  }

  bool start_object(std::size_t) override {
    if (at_ == ReaderState::kStart) {
      at_ = ReaderState::kTop;
      return true;
    }
    if (at_ != ReaderState::kTop || name_.empty()) return unexpected("an object");
    at_ = name_ == "__metadata__" ? ReaderState::kMetadata : ReaderState::kTensor;
    keys_.clear();
    tensor_ = {.name = name_};
    return true;
  }
  bool key(std::string& key) override {
    if (at_ == ReaderState::kTop) {
      if (key.empty()) return refuse("a tensor without a name");
      if (!names_.insert(key).second) return refuse(fmt::format("'{}' appears twice", shown(key)));
      name_ = key;
      return true;
    }
    if (!keys_.insert(key).second)
      return refuse(fmt::format("'{}': '{}' appears twice", shown(name_), shown(key)));
    key_ = key;
    if (at_ == ReaderState::kMetadata) {
      at_ = ReaderState::kMetadataValue;
      return true;
    }
    if (key == "dtype") {
      at_ = ReaderState::kDtype;
    } else if (key == "shape") {
      at_ = ReaderState::kShape;
    } else if (key == "data_offsets") {
      at_ = ReaderState::kOffsets;
    } else {
      return refuse(
          fmt::format("tensor '{}' has the unknown key '{}'; legal are dtype, shape and "
                      "data_offsets",
                      shown(name_), shown(key)));
    }
    return true;
  }
  bool end_object() override {
    if (at_ == ReaderState::kTop) {
      at_ = ReaderState::kEnd;
      return true;
    }
    if (at_ == ReaderState::kMetadata) {
      at_ = ReaderState::kTop;
      name_.clear();
      return true;
    }
    return at_ == ReaderState::kTensor ? finish_tensor() : unexpected("the end of an object");
  }
  bool start_array(std::size_t) override {
    if ((at_ != ReaderState::kShape && at_ != ReaderState::kOffsets) || in_array_)
      return unexpected("an array");
    in_array_ = true;
    numbers_.clear();
    return true;
  }
  bool end_array() override {
    in_array_ = false;
    if (at_ == ReaderState::kShape) {
      tensor_.shape = numbers_;
    } else if (numbers_.size() != 2) {
      return refuse(fmt::format("tensor '{}': data_offsets must be two numbers, found {}",
                                shown(name_), numbers_.size()));
    } else {
      tensor_.offset = numbers_[0];
      end_ = numbers_[1];
    }
    at_ = ReaderState::kTensor;
    return true;
  }
  bool parse_error(std::size_t position, const std::string&,
                   const nlohmann::json::exception&) override {
    return refuse(fmt::format("the header is not valid JSON at its byte {}", position));
  }

 private:
  bool refuse(std::string why) {
    if (why_.empty()) why_ = std::move(why);
    return false;
  }
  bool unexpected(const std::string& what) {
    const std::string place = name_.empty() ? "the header" : "'" + shown(name_) + "'";
    return refuse(place + ": " + what + " is not expected here");
  }

  bool finish_tensor() {
    for (const char* const wanted : {"dtype", "shape", "data_offsets"})
      if (!keys_.contains(wanted))
        return refuse(fmt::format("tensor '{}' has no {}", shown(name_), wanted));
    if (end_ < tensor_.offset)
      return refuse(fmt::format("tensor '{}': its data end at {} before they begin at {}",
                                shown(name_), end_, tensor_.offset));
    const auto bytes = bytes_of(tensor_.type, tensor_.shape);
    if (!bytes || *bytes != end_ - tensor_.offset)
      return refuse(
          fmt::format("tensor '{}' of {}[{}] does not take the {} bytes that its "
                      "data_offsets span",
                      shown(name_), name_of(tensor_.type), fmt::join(tensor_.shape, ","),
                      end_ - tensor_.offset));
    header_.tensors.push_back(std::move(tensor_));
    at_ = ReaderState::kTop;
    name_.clear();
    return true;
  }

  SafetensorsHeader& header_;
  ReaderState at_ = ReaderState::kStart;
  bool in_array_ = false;
  std::string name_;  // the tensor, or __metadata__, that is being read; empty: between them
  std::string key_;
  StoredTensor tensor_;
  std::int64_t end_ = 0;
  std::vector<std::int64_t> numbers_;
  std::set<std::string> names_;
  std::set<std::string> keys_;
  std::string why_;
};

std::int64_t end_of(const StoredTensor& tensor) {
  const auto bytes = bytes_of(tensor.type, tensor.shape);
  FORESHARD_CHECK(bytes.has_value());
  return tensor.offset + *bytes;
}

// Why the tensors do not cover the data exactly (an overlap, a hole, an end before or after that of
// the data); nothing if they do. \pre `tensors` are sorted by offset.
std::optional<std::string> coverage_fault(const std::vector<StoredTensor>& tensors,
                                          std::int64_t data_bytes) {
  std::int64_t covered = 0;
  std::string before = "the beginning";
  for (const StoredTensor& tensor : tensors) {
    if (tensor.offset < covered)
      return fmt::format("tensor '{}' begins at {} and overlaps {}, which ends at {}",
                         shown(tensor.name), tensor.offset, before, covered);
    if (tensor.offset > covered)
      return fmt::format("bytes {} to {} before tensor '{}' belong to no tensor", covered,
                         tensor.offset, shown(tensor.name));
    covered = end_of(tensor);
    before = "'" + shown(tensor.name) + "'";
  }
  if (covered > data_bytes)
    return fmt::format(
        "the data of tensor {} end at {}, but only {} bytes follow the header: the file is "
        "truncated",
        before, covered, data_bytes);
  if (covered < data_bytes)
    return fmt::format("the last {} bytes belong to no tensor", data_bytes - covered);
  return std::nullopt;
}

}  // namespace

std::string_view name_of(ElementType type) {
  return row_of(type).name;
}

std::optional<ElementType> element_type_named(std::string_view name) {
  const auto* const it = std::ranges::find(kTypes, name, &TypeRow::name);
  if (it == kTypes.end()) return std::nullopt;
  return it->type;
}

std::vector<std::string> element_type_names() {
  std::vector<std::string> names;
  names.reserve(kTypes.size());
  for (const TypeRow& row : kTypes) names.emplace_back(row.name);
  return names;
}

std::int64_t size_of(ElementType type) {
  return row_of(type).size;
}

ElementType stored_as(DType dtype) {
  switch (dtype) {
    case DType::kFp32:
    case DType::kTf32:
      return ElementType::kF32;
    case DType::kFp16:
      return ElementType::kF16;
    case DType::kBf16:
      return ElementType::kBf16;
    case DType::kFp8:
      return ElementType::kF8E4M3;
    case DType::kFp4:  // no parameter has it: kernels quantize to it
      break;
    case DType::kInt8:
      return ElementType::kI8;
    case DType::kInt32:
      return ElementType::kI32;
    case DType::kInt64:
      return ElementType::kI64;
  }
  FORESHARD_CHECK(false);
}

std::optional<std::int64_t> bytes_of(ElementType type, const Shape& shape) {
  constexpr std::int64_t kMost = std::int64_t{1} << 62;
  if (std::ranges::any_of(shape, [](std::int64_t extent) { return extent < 0; }))
    return std::nullopt;
  if (std::ranges::find(shape, 0) != shape.end()) return 0;
  std::int64_t bytes = size_of(type);
  for (const std::int64_t extent : shape) {
    if (bytes > kMost / extent) return std::nullopt;
    bytes *= extent;
  }
  return bytes;
}

Result<std::int64_t> safetensors_header_length(std::string_view first, std::int64_t file_bytes) {
  constexpr std::size_t kPrefix = 8;
  if (first.size() < kPrefix)
    return fault(fmt::format(
        "{} bytes are not a safetensors file, whose first 8 bytes are the length of the header",
        first.size()));
  std::uint64_t length = 0;
  for (std::size_t i = kPrefix; i-- > 0;)
    length = length << 8 | static_cast<unsigned char>(first[i]);
  const Bytes most = limits::raised(limits::kSafetensorsHeader);
  if (static_cast<double>(length) > most / 1_B)
    return fault(
        fmt::format("a header of {} bytes is above the limit of {:.0f}: the file is damaged, or "
                    "not a safetensors file; {}",
                    length, most / 1_B, limits::kRemedy));
  if (static_cast<std::int64_t>(length) > file_bytes - static_cast<std::int64_t>(kPrefix))
    return fault(
        fmt::format("a header of {} bytes does not fit into a file of {}: the file is truncated, "
                    "or not a safetensors file",
                    length, file_bytes));
  return static_cast<std::int64_t>(length);
}

Result<SafetensorsHeader> parse_safetensors_header(std::string_view json, std::int64_t data_bytes) {
  if (json.empty() || json.front() != '{')
    return fault(
        "the header does not begin with '{': the file is damaged, or not a safetensors file");
  SafetensorsHeader header;
  HeaderReader reader(header);
  if (!nlohmann::json::sax_parse(json, &reader))
    return fault(reader.why().empty() ? "the header is not valid JSON" : reader.why());
  std::ranges::sort(header.tensors, {}, [](const StoredTensor& tensor) {
    return std::tuple(tensor.offset, end_of(tensor), std::string_view(tensor.name));
  });
  if (auto why = coverage_fault(header.tensors, data_bytes)) return fault(*std::move(why));
  return header;
}

std::string safetensors_header(const std::vector<StoredTensor>& tensors,
                               const std::map<std::string, std::string>& metadata) {
  const auto quoted = [](const std::string& text) { return nlohmann::json(text).dump(); };
  std::string json = "{";
  if (!metadata.empty()) {
    json += "\"__metadata__\":{";
    for (const auto& [key, value] : metadata)
      json += (json.back() == '{' ? "" : ",") + quoted(key) + ":" + quoted(value);
    json += "}";
  }
  std::int64_t offset = 0;
  for (const StoredTensor& tensor : tensors) {
    const auto bytes = bytes_of(tensor.type, tensor.shape);
    FORESHARD_CHECK(bytes.has_value());
    json += fmt::format("{}{}:{{\"dtype\":\"{}\",\"shape\":[{}],\"data_offsets\":[{},{}]}}",
                        json.size() == 1 ? "" : ",", quoted(tensor.name), name_of(tensor.type),
                        fmt::join(tensor.shape, ","), offset, offset + *bytes);
    offset += *bytes;
  }
  json += "}";
  json.append((8 - json.size() % 8) % 8, ' ');  // so that the data begin at a multiple of 8
  std::string text(8, '\0');
  for (std::size_t i = 0; i < 8; ++i) text[i] = static_cast<char>(json.size() >> (8 * i) & 0xff);
  return text + json;
}

}  // namespace foreshard::checkpoint
