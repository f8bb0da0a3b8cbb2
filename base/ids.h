/// \file
/// `Id<Tag>`: an index into one particular table. Ids of different tables do not mix:
///
///     using DeviceId = Id<struct DeviceTag>;
///     DeviceId d{3};  links[d];  // error: `links` is indexed by LinkId
#pragma once

#include <compare>
#include <cstdint>
#include <functional>

namespace foreshard {

template <class Tag>
class Id {
 public:
  constexpr Id() = default;  ///< Invalid: refers to nothing.
  constexpr explicit Id(std::int64_t index) : index_(static_cast<std::int32_t>(index)) {}

  constexpr bool valid() const { return index_ >= 0; }
  constexpr std::int32_t value() const { return index_; }
  /// For subscripts of the id's own table.
  /// \pre valid()
  constexpr std::size_t index() const { return static_cast<std::size_t>(index_); }
  constexpr auto operator<=>(const Id&) const = default;

 private:
  std::int32_t index_ = -1;
};

}  // namespace foreshard

template <class Tag>
struct std::hash<foreshard::Id<Tag>> {
  std::size_t operator()(foreshard::Id<Tag> id) const noexcept {
    return std::hash<std::int32_t>{}(id.value());
  }
};
