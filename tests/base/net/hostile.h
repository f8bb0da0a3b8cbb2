/// \file
/// Connections of strangers to a port of this host: some that end at once, with or without bytes of
/// many kinds, and some that stay and say nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <netinet/in.h>
#include <string>
#include <sys/socket.h>
#include <vector>

#include "base/net/message.h"
#include "base/net/socket.h"
#include "tests/seeds.h"

namespace foreshard::net {

class Hostile {
 public:
  explicit Hostile(std::uint16_t port, int silent = 700, int brief = seeds(1000, 10000)) {
    const std::vector<std::string> words{"",
                                         "GET / HTTP/1.1\r\n\r\n",
                                         std::string("\xff\xff\xff\xff", 4) + "rest",
                                         std::string("\0\0", 2),
                                         encode({"hello", "1", "other", "t"}),
                                         std::string(9000, 'x')};
    for (int i = 0; i < silent; ++i) silent_.push_back(connected(port));
    for (int i = 0; i < brief; ++i) {
      const Descriptor socket = connected(port);
      const std::string& bytes = words[static_cast<std::size_t>(i) % words.size()];
      ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    }
  }

 private:
  // Does not wait for the server, which has a queue of some thousands.
  static Descriptor connected(std::uint16_t port) {
    Descriptor socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(port);
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    static_cast<void>(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&to), sizeof to));
    return socket;
  }

  std::vector<Descriptor> silent_;
};

}  // namespace foreshard::net
