// Reads a small XML document by expat (internal/nccl_xml.h, parse_xml), for nccl_xml.cc; only this
// file includes expat. Text between elements, DOCTYPE and documents that are too deep or too large
// are refused with their line.
#include <algorithm>
#include <expat.h>
#include <limits>
#include <memory>

#include "base/limits.h"

#include "topology/import/internal/nccl_xml.h"

namespace foreshard::internal {
namespace {

struct ElementReader {
  XML_Parser parser = nullptr;
  XmlElement root;
  std::vector<XmlElement*> open;
  std::size_t elements = 0;
  std::optional<XmlFault> fault;

  void stop(const std::string& why) {
    if (fault) return;
    fault = XmlFault{static_cast<std::int64_t>(XML_GetCurrentLineNumber(parser)), why};
    XML_StopParser(parser, XML_FALSE);
  }
};

void begin(void* data, const XML_Char* name, const XML_Char** attributes) {
  auto& reader = *static_cast<ElementReader*>(data);
  if (reader.fault) return;
  if (reader.open.size() >= static_cast<std::size_t>(limits::kDepth))
    return reader.stop("elements are nested deeper than " + std::to_string(limits::kDepth));
  if (++reader.elements > limits::raised(limits::kXmlElements))
    return reader.stop("more than " + std::to_string(limits::raised(limits::kXmlElements)) +
                       " elements; " + limits::kRemedy);
  XmlElement element;
  element.name = name;
  element.line = static_cast<std::int64_t>(XML_GetCurrentLineNumber(reader.parser));
  for (const XML_Char** at = attributes; *at != nullptr; at += 2)
    element.attributes.emplace_back(at[0], at[1]);
  if (element.attributes.size() > limits::raised(limits::kXmlAttributes))
    return reader.stop("<" + element.name + "> has more than " +
                       std::to_string(limits::kXmlAttributes) + " attributes");
  if (reader.open.empty()) {
    reader.root = std::move(element);
    reader.open.push_back(&reader.root);
  } else {
    // Earlier siblings are closed, so no pointer to them dangles when the vector grows.
    auto& siblings = reader.open.back()->children;
    siblings.push_back(std::move(element));
    reader.open.push_back(&siblings.back());
  }
}

void end(void* data, const XML_Char*) {
  auto& reader = *static_cast<ElementReader*>(data);
  if (!reader.fault) reader.open.pop_back();
}

void text_between(void* data, const XML_Char* text, int length) {
  auto& reader = *static_cast<ElementReader*>(data);
  const std::string_view found(text, static_cast<std::size_t>(length));
  if (found.find_first_not_of(" \t\r\n") != std::string_view::npos)
    reader.stop("text between elements");
}

void doctype(void* data, const XML_Char*, const XML_Char*, const XML_Char*, int) {
  static_cast<ElementReader*>(data)->stop("a DOCTYPE: topology files have none");
}

}  // namespace

const std::string* XmlElement::attribute(std::string_view key) const {
  const auto found =
      std::ranges::find(attributes, key, &std::pair<std::string, std::string>::first);
  return found == attributes.end() ? nullptr : &found->second;
}

std::variant<XmlElement, XmlFault> parse_xml(std::string_view text) {
  const std::unique_ptr<XML_ParserStruct, void (*)(XML_Parser)> parser(XML_ParserCreate(nullptr),
                                                                       XML_ParserFree);
  if (!parser) return XmlFault{0, "no memory for the XML parser"};
  if (text.size() > static_cast<std::size_t>(std::numeric_limits<int>::max()))
    return XmlFault{0, "too large"};
  ElementReader reader;
  reader.parser = parser.get();
  XML_SetUserData(parser.get(), &reader);
  XML_SetElementHandler(parser.get(), begin, end);
  XML_SetCharacterDataHandler(parser.get(), text_between);
  XML_SetStartDoctypeDeclHandler(parser.get(), doctype);
  const auto status = XML_Parse(parser.get(), text.data(), static_cast<int>(text.size()), XML_TRUE);
  if (reader.fault) return *std::move(reader.fault);
  if (status != XML_STATUS_OK)
    return XmlFault{static_cast<std::int64_t>(XML_GetCurrentLineNumber(parser.get())),
                    XML_ErrorString(XML_GetErrorCode(parser.get()))};
  return std::move(reader.root);
}

}  // namespace foreshard::internal
