#include "strategies/checkpoint/safetensors.h"

#include "tests/test.h"

namespace foreshard::checkpoint::safetensors_test {

const std::string kQkv =
    R"({"__metadata__":{"format":"pt"},"qkv":{"dtype":"BF16","shape":[2,3],"data_offsets":[0,12]})";

// By hand: 2 x 3 elements of 2 bytes are 12, a scalar of 8 bytes follows. The text has 132
// characters; the header is padded to 136 = 0x88.
TEST(Safetensors, WritesAHeader) {
  const std::vector<StoredTensor> tensors{
      {.name = "qkv", .type = ElementType::kBf16, .shape = {2, 3}},
      {.name = "step", .type = ElementType::kI64, .offset = 12}};
  const std::string text = kQkv + R"(,"step":{"dtype":"I64","shape":[],"data_offsets":[12,20]}})";
  ASSERT_LE(text.size(), 152U);
  const std::string header = safetensors_header(tensors, {{"format", "pt"}});
  EXPECT_EQ(header.size() % 8, 0U);
  EXPECT_EQ(static_cast<unsigned char>(header[0]), header.size() - 8);
  EXPECT_EQ(header.substr(1, 7), std::string(7, '\0'));
  EXPECT_EQ(header.substr(8, text.size()), text);
  EXPECT_EQ(header.find_first_not_of(' ', 8 + text.size()), std::string::npos);

  EXPECT_EQ(*safetensors_header_length(header.substr(0, 8), 1000),
            static_cast<std::int64_t>(header.size()) - 8);
  const auto read = value_of(parse_safetensors_header(header.substr(8), 20));
  EXPECT_EQ(read.tensors, tensors);
  EXPECT_EQ(read.metadata.at("format"), "pt");
}

TEST(Safetensors, ReadsNamesInAnyScriptAndEmptyTensors) {
  const auto read = value_of(parse_safetensors_header(
      R"({"Gewicht.größe":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
      R"("\u91cd\u307f":{"data_offsets":[4,4],"shape":[0,7],"dtype":"F8_E4M3"}}   )",
      4));
  EXPECT_EQ(read.tensors[0].name, "Gewicht.größe");
  EXPECT_EQ(read.tensors[1].name, "重み");
  const std::string again = safetensors_header(read.tensors, {});
  EXPECT_EQ(parse_safetensors_header(again.substr(8), 4)->tensors, read.tensors);
}

// tests/errors/safetensors.yaml has the others.
TEST(Safetensors, NamesWhatIsNoTextOfAHeader) {
  const auto fault = [](const std::string& json) {
    return message_of(parse_safetensors_header(json, 12));
  };
  EXPECT_THAT(fault(""), HasSubstr("does not begin with '{'"));
  EXPECT_THAT(fault("{\"\xff\":1}"), HasSubstr("not valid JSON"));
}

TEST(Safetensors, ChecksTheLength) {
  const auto length = [](const std::string& first, std::int64_t file_bytes) {
    const auto read = safetensors_header_length(first, file_bytes);
    return read ? std::to_string(*read) : read.error().message;
  };
  using namespace std::string_literals;
  EXPECT_EQ(length("\x10\x01\0\0\0\0\0\0"s, 280), "272");
  EXPECT_THAT(length("\x10\x01\0\0\0\0\0\0"s, 279), HasSubstr("does not fit into a file of 279"));
  EXPECT_THAT(length("\x10\x01"s, 2), HasSubstr("2 bytes are not a safetensors file"));
  EXPECT_THAT(length("PK\3\4garb"s, 1 << 30), HasSubstr("above the limit of 100000000"));
}

}  // namespace foreshard::checkpoint::safetensors_test
