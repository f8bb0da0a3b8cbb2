/// \file
/// Messages between the processes of one job, and how a rank finds and greets rank 0. A message is
/// the size of the rest and then words; a word is its size and then its bytes. Sizes have 4 bytes,
/// little endian.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/net/socket.h"
#include "base/result.h"
#include "base/units.h"

namespace foreshard::net {

using Message = std::vector<std::string>;

inline constexpr std::size_t kSizeBytes = 4;
/// The largest message, where a job names no other limit.
inline constexpr std::size_t kLargestMessage = std::size_t{16} << 20;
/// The largest message to or from a process that is not admitted yet.
inline constexpr std::size_t kLargestHello = 4096;

std::string encode(const Message& words);
/// The size that begins `bytes`. \pre they are at least kSizeBytes.
std::size_t size_in(std::string_view bytes);
/// The words of a message without its leading size. Nothing if sizes do not add up.
std::optional<Message> decode(std::string_view bytes);

/// \return false where the peer is gone.
bool send(int socket, const Message& words);
/// \return nothing where the peer is gone, or does not send a message of at most `largest` bytes.
std::optional<Message> receive(int socket, std::size_t largest = kLargestMessage);

/// A connection that rank 0 has admitted, and the words of its welcome after "welcome".
struct Greeted {
  Descriptor socket{};
  Message welcome{};
};

/// Connects to rank 0 and says hello; tries again until `patience` is over.
/// \return nothing where what answers is no server of a job; kIo where nobody is there;
///     kInvalidInput with rank 0's reason where it refuses.
Result<std::optional<Greeted>> greet(const std::string& address, std::uint16_t port,
                                     const Message& hello, Seconds patience);

/// The same for `rank` of a job whose rank 0 says in `file` where it is (identity.h). The file may
/// be left from an earlier job: a rank that finds nobody there looks again, until `patience` is
/// over or `is_over()`, which may be empty.
/// \return nothing where `is_over()`; kInvalidInput as greet; kIo where rank 0 is not found.
Result<std::optional<Greeted>> greet_by_file(const std::filesystem::path& file, std::int32_t rank,
                                             const Message& hello, Seconds patience,
                                             const std::function<bool()>& is_over);

}  // namespace foreshard::net
