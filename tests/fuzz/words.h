/// \file
/// What the fuzzers of messages share. An input is a line for each message, with tabs between its
/// words, which plain mutations turn into many messages; after a '!' it is the bytes of a
/// connection. And a folder of this process.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

#include "base/check.h"
#include "base/net/identity.h"
#include "base/net/message.h"
#include "base/net/socket.h"
#include "base/quantity.h"
#include "tests/fuzz/fuzzer.h"

namespace foreshard::fuzz {

/// A folder that is removed when the process ends.
class Folder {
 public:
  Folder()
      : path_(std::filesystem::temp_directory_path() /
              ("foreshard-fuzz-" + std::to_string(::getpid()))) {
    std::filesystem::create_directories(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  static const std::filesystem::path& path() {
    static const Folder folder;
    return folder.path_;
  }

 private:
  std::filesystem::path path_;
};

inline std::vector<net::Message> messages_in(std::string_view text) {
  std::vector<net::Message> all;
  for (const std::string& line : parts_of(text, '\n')) all.push_back(parts_of(line, '\t'));
  return all;
}

/// Sends `bytes` as a process that then has no more to say. What comes back are messages.
inline void speak(std::uint16_t port, std::string_view bytes) {
  const auto socket = net::connect_to(net::kLoopback, port, 5_s);
  FORESHARD_CHECK(socket.has_value());
  net::send_all(socket->get(), bytes);
  ::shutdown(socket->get(), SHUT_WR);
  std::string head;
  while (net::receive_all(socket->get(), net::kSizeBytes, head)) {
    std::string body;
    if (!net::receive_all(socket->get(), net::size_in(head), body)) break;
    FORESHARD_CHECK(net::decode(body).has_value());
    head.clear();
  }
}

/// Speaks what an input holds, once `mend` has had each message.
template <class Mend>
void speak_input(std::uint16_t port, std::string_view text, const Mend& mend) {
  if (text.starts_with('!')) return speak(port, text.substr(1));
  std::string bytes;
  for (net::Message& message : messages_in(text)) {
    mend(message);
    const std::string encoded = net::encode(message);
    FORESHARD_CHECK(net::decode(std::string_view(encoded).substr(net::kSizeBytes)) == message);
    bytes += encoded;
  }
  speak(port, bytes);
}

}  // namespace foreshard::fuzz
