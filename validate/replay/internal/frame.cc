#include "validate/replay/internal/frame.h"

#include "base/check.h"

namespace foreshard::replay::internal {
namespace {

void put(std::string& out, std::uint64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out.push_back(static_cast<char>((value >> (8 * i)) & 0xff));
}

std::uint64_t take(std::string_view bytes, int count) {
  std::uint64_t value = 0;
  for (int i = 0; i < count; ++i)
    value |= std::uint64_t{static_cast<unsigned char>(bytes[static_cast<std::size_t>(i)])}
             << (8 * i);
  return value;
}

}  // namespace

std::string encode(const Frame& frame) {
  std::size_t size = kFrameFixed;
  for (const std::string& field : frame.fields) size += 4 + field.size();
  FORESHARD_CHECK(size <= 0xffffffff);
  std::string out;
  out.reserve(kFrameHead + size);
  put(out, size, 4);
  put(out, static_cast<std::uint64_t>(frame.kind), 1);
  put(out, frame.number, 8);
  for (const std::string& field : frame.fields) {
    put(out, field.size(), 4);
    out += field;
  }
  return out;
}

std::size_t size_after_head(std::string_view head) {
  FORESHARD_CHECK(head.size() >= kFrameHead);
  return static_cast<std::size_t>(take(head, 4));
}

std::optional<Frame> decode(std::string_view rest) {
  if (rest.size() < kFrameFixed) return std::nullopt;
  const std::uint64_t kind = take(rest, 1);
  if (kind < static_cast<std::uint64_t>(FrameKind::kHello) ||
      kind > static_cast<std::uint64_t>(FrameKind::kEnded))
    return std::nullopt;
  Frame frame{.kind = static_cast<FrameKind>(kind), .number = take(rest.substr(1), 8)};
  rest.remove_prefix(kFrameFixed);
  while (!rest.empty()) {
    if (rest.size() < 4) return std::nullopt;
    const auto size = static_cast<std::size_t>(take(rest, 4));
    rest.remove_prefix(4);
    if (rest.size() < size) return std::nullopt;
    frame.fields.emplace_back(rest.substr(0, size));
    rest.remove_prefix(size);
  }
  return frame;
}

}  // namespace foreshard::replay::internal
