// Who may speak with a server of pages: tokens, hosts and origins.
#include "base/http/link.h"

#include "tests/test.h"

namespace foreshard::http {
namespace {

TEST(Link, HasATokenOf128Bits) {
  const auto link = Link::of(40123);
  ASSERT_TRUE(link);
  EXPECT_TRUE(link->text().starts_with("http://127.0.0.1:40123/"));
  EXPECT_TRUE(link->text().ends_with("/"));
  EXPECT_EQ(link->text().size(), std::string("http://127.0.0.1:40123/").size() + 32 + 1);
  EXPECT_NE(link->text(), Link::of(40123)->text());
}

TEST(Link, AnswersPathsBelowItsTokenAlone) {
  const auto link = Link::of(40123);
  const std::string path = link->text().substr(std::string("http://127.0.0.1:40123").size());
  EXPECT_EQ(link->below_token(path), "");
  EXPECT_EQ(link->below_token(path + "simulate"), "simulate");
  std::string wrong = path;
  wrong[5] = wrong[5] == '0' ? '1' : '0';
  for (const std::string& other : {std::string(), std::string("/"), path.substr(0, path.size() - 1),
                                   path.substr(1), wrong, "/" + path, path.substr(0, 5) + "/"})
    EXPECT_FALSE(link->below_token(other)) << other;
}

TEST(Link, KnowsItsHostsAndOrigins) {
  const auto link = Link::of(40123);
  EXPECT_TRUE(link->is_host("127.0.0.1:40123"));
  EXPECT_TRUE(link->is_host("localhost:40123"));
  for (const char* other :
       {"", "127.0.0.1", "127.0.0.1:4012", "example.org:40123", "127.0.0.1:40123.example.org"})
    EXPECT_FALSE(link->is_host(other)) << other;
  EXPECT_TRUE(link->is_origin("http://127.0.0.1:40123"));
  for (const char* other : {"", "null", "https://127.0.0.1:40123", "http://example.org",
                            "http://127.0.0.1:40123.example.org"})
    EXPECT_FALSE(link->is_origin(other)) << other;
}

}  // namespace
}  // namespace foreshard::http
