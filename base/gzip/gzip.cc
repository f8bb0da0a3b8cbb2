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

struct Gzip::State {
  z_stream stream{};

  // Takes all of `piece` with `flush`.
  std::string deflated(std::string_view piece, int flush) {
    std::string packed;
    std::array<char, 1 << 16> block{};
    int status = Z_OK;
    do {
      // zlib takes the bytes as its own, but does not write to them.
      stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(piece.data()));
      stream.avail_in =
          static_cast<uInt>(std::min<std::size_t>(piece.size(), std::numeric_limits<uInt>::max()));
      const uInt given = stream.avail_in;
      stream.next_out = reinterpret_cast<Bytef*>(block.data());
      stream.avail_out = static_cast<uInt>(block.size());
      status = deflate(&stream, given == piece.size() ? flush : Z_NO_FLUSH);
      piece.remove_prefix(given - stream.avail_in);
      packed.append(block.data(), block.size() - stream.avail_out);
    } while (flush == Z_FINISH ? status != Z_STREAM_END : !piece.empty() || stream.avail_out == 0);
    return packed;
  }
};

Gzip::Gzip() : state_(std::make_unique<State>()) {
  constexpr int kMemory = 9;  // the most: it saves time
  FORESHARD_CHECK(deflateInit2(&state_->stream, Z_BEST_COMPRESSION, Z_DEFLATED, kGzipWindow,
                               kMemory, Z_DEFAULT_STRATEGY) == Z_OK);
}

Gzip::Gzip(Gzip&&) noexcept = default;

Gzip::~Gzip() {
  if (state_) deflateEnd(&state_->stream);
}

std::string Gzip::append(std::string_view piece) {
  return state_->deflated(piece, Z_NO_FLUSH);
}

std::string Gzip::finish() {
  return state_->deflated({}, Z_FINISH);
}

std::string gzip(std::string_view text) {
  Gzip packer;
  std::string packed = packer.append(text);
  return packed += packer.finish();
}

Result<NewFileByName> NewFileByName::begin(const std::filesystem::path& path) {
  FORESHARD_ASSIGN(auto file, NewFile::begin(path));
  NewFileByName result(std::move(file));
  if (path.extension() == ".gz") result.packed_.emplace();
  return result;
}

Status NewFileByName::append(std::string_view bytes) {
  return packed_ ? file_.append(packed_->append(bytes)) : file_.append(bytes);
}

Status NewFileByName::finish() {
  if (packed_) FORESHARD_TRY(file_.append(packed_->finish()));
  return file_.finish();
}

}  // namespace foreshard
