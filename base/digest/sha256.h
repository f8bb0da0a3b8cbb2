/// \file
/// SHA-256, for naming inputs and results by content.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace foreshard {

/// The digest of `bytes` in lower-case hexadecimal (64 characters). Source: FIPS 180-4.
std::string sha256(std::string_view bytes);

/// The same digest, of bytes that come in pieces.
class Sha256 {
 public:
  Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;
  ~Sha256();

  void update(std::string_view bytes);
  /// The digest of all bytes so far. No call may follow.
  std::string finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace foreshard
