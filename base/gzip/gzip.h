/// \file
/// Texts that gzip compressed (RFC 1952): read as profilers write their traces, and written.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/file.h"
#include "base/result.h"
#include "base/units.h"

namespace foreshard {

/// Whether `bytes` begin like a gzip file.
bool is_gzip(std::string_view bytes);

/// The decompressed content of `bytes`, which are one or several gzip members one after another.
/// \param name  stands for the file in messages.
/// \return kInvalidInput with "name:" where the bytes are no gzip file, end too early, are damaged,
///     or hold more than `largest` or than limits::kRatio for each of theirs.
Result<std::string> gunzip(std::string_view bytes, std::string_view name, Bytes largest);

/// `text` as one gzip member without a name or a time: the same text gives the same bytes.
std::string gzip(std::string_view text);

/// Compresses a text that comes in pieces, to the bytes of gzip() of the whole text.
class Gzip {
 public:
  Gzip();
  Gzip(Gzip&&) noexcept;
  Gzip& operator=(Gzip&&) = delete;
  ~Gzip();

  /// \return what can be said of the compressed text so far; the rest comes with later pieces.
  std::string append(std::string_view piece);
  /// \return the rest.
  std::string finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// A NewFile that gzip compresses if its name ends in ".gz".
class NewFileByName {
 public:
  /// \return the errors of NewFile::begin.
  static Result<NewFileByName> begin(const std::filesystem::path& path);
  /// \return kIo
  Status append(std::string_view bytes);
  /// \return kIo
  Status finish();

 private:
  explicit NewFileByName(NewFile file) : file_(std::move(file)) {}
  NewFile file_;
  std::optional<Gzip> packed_{};
};

}  // namespace foreshard
