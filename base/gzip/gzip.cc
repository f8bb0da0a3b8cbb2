#include "base/gzip/gzip.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <zlib.h>

#include "base/check.h"
#include "base/limits.h"
#include "base/quantity.h"

namespace foreshard {
namespace {

// zlib's window of 32 KiB, with a header of gzip.
constexpr int kGzipWindow = 15 + 16;

class Inflater {
 public:
  Inflater() { FORESHARD_CHECK(inflateInit2(&stream_, kGzipWindow) == Z_OK); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
  ~Inflater() { inflateEnd(&stream_); }
  z_stream& stream() { return stream_; }

 private:
  z_stream stream_{};
};

}  // namespace

bool is_gzip(std::string_view bytes) {
  return bytes.starts_with("\x1f\x8b");
}

Result<std::string> gunzip(std::string_view bytes, std::string_view name, Bytes largest) {
  const auto fault = [&](const std::string& why) {
    return Error{Error::Code::kInvalidInput, std::string(name) + ": " + why};
  };
  if (!is_gzip(bytes)) return fault("is not compressed by gzip; give the file as it was written");
  Inflater inflater;
  z_stream& stream = inflater.stream();
  largest = limits::raised(largest);
  const Bytes packed = Bytes::from_base(static_cast<double>(bytes.size()));
  const double ratio = limits::kRatio * limits::factor();
  const Bytes by_ratio = limits::raised(limits::kSmall) + packed * ratio;
  const auto limit = static_cast<std::size_t>(std::min(largest, by_ratio).in_base());
  std::string text;
  std::array<char, 1 << 16> block{};
  bool ended = false;
  while (!ended || !bytes.empty()) {
    if (ended) {  // the next member
      if (!is_gzip(bytes)) return fault("has other bytes behind what gzip compressed");
      FORESHARD_CHECK(inflateReset(&stream) == Z_OK);
    }
    // zlib takes the bytes as its own, but does not write to them.
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream.avail_in =
        static_cast<uInt>(std::min<std::size_t>(bytes.size(), std::numeric_limits<uInt>::max()));
    const uInt given = stream.avail_in;
    stream.next_out = reinterpret_cast<Bytef*>(block.data());
    stream.avail_out = static_cast<uInt>(block.size());
    const int status = inflate(&stream, Z_NO_FLUSH);
    bytes.remove_prefix(given - stream.avail_in);
    text.append(block.data(), block.size() - stream.avail_out);
    if (text.size() > limit)
      return fault(largest <= by_ratio
                       ? "holds more than the limit of " + format(largest) + "; " + limits::kRemedy
                       : "unpacks to more than " + std::to_string(std::llround(ratio)) +
                             " times its " + format(packed) + "; " + limits::kRemedy);
    if (status == Z_BUF_ERROR || (status == Z_OK && bytes.empty() && stream.avail_out > 0))
      return fault("ends before what gzip compressed does; copy the whole file");
    if (status != Z_OK && status != Z_STREAM_END)
      return fault("is damaged: gzip's checks fail; copy it again");
    ended = status == Z_STREAM_END;
  }
  return text;
}

std::string gzip(std::string_view text) {
  constexpr int kMemory = 9;  // the most: it saves time
  z_stream stream{};
  FORESHARD_CHECK(deflateInit2(&stream, Z_BEST_COMPRESSION, Z_DEFLATED, kGzipWindow, kMemory,
                               Z_DEFAULT_STRATEGY) == Z_OK);
  std::string packed;
  std::array<char, 1 << 16> block{};
  int status = Z_OK;
  while (status != Z_STREAM_END) {
    // zlib takes the bytes as its own, but does not write to them.
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    stream.avail_in =
        static_cast<uInt>(std::min<std::size_t>(text.size(), std::numeric_limits<uInt>::max()));
    const uInt given = stream.avail_in;
    stream.next_out = reinterpret_cast<Bytef*>(block.data());
    stream.avail_out = static_cast<uInt>(block.size());
    status = deflate(&stream, given == text.size() ? Z_FINISH : Z_NO_FLUSH);
    text.remove_prefix(given - stream.avail_in);
    packed.append(block.data(), block.size() - stream.avail_out);
  }
  FORESHARD_CHECK(deflateEnd(&stream) == Z_OK);
  return packed;
}

}  // namespace foreshard
