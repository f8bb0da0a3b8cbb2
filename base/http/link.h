/// \file
/// Who may speak with a server of pages (server.h): what its link says, and what requests must.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace foreshard::http {

class Link {
 public:
  /// With a new token of 128 random bits.
  /// \return kIo where the system has no random numbers.
  static Result<Link> of(std::uint16_t port);

  const std::string& text() const { return text_; }

  /// The path after the token: "" and "simulate" of "/TOKEN/" and "/TOKEN/simulate".
  /// \return nothing where it begins with anything else. The time that this takes tells nothing
  ///     about the token.
  std::optional<std::string> below_token(std::string_view path) const;
  /// Whether a Host header means this server.
  bool is_host(std::string_view host) const;
  /// Whether an Origin header does.
  bool is_origin(std::string_view origin) const;

 private:
  std::string port_;
  std::string token_;
  std::string text_;
};

}  // namespace foreshard::http
