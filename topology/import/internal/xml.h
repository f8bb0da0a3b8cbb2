/// \file
/// A small XML document as a tree with line numbers, by expat. Only elements and attributes: text
/// between elements, DOCTYPE (and with it every entity of one's own), and documents deeper or
/// larger than any topology file are refused.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace foreshard::internal {

struct XmlElement {
  std::string name;
  std::int64_t line = 0;
  std::vector<std::pair<std::string, std::string>> attributes;
  std::vector<XmlElement> children;

  /// \return null if it is not there.
  const std::string* attribute(std::string_view key) const;
};

struct XmlFault {
  std::int64_t line = 0;
  std::string why;
};

/// The root element, or what is wrong and where.
std::variant<XmlElement, XmlFault> parse_xml(std::string_view text);

}  // namespace foreshard::internal
