#include "validate/replay/arguments.h"

#include "tests/test.h"

namespace foreshard::replay::arguments_test {

std::string fault(const std::vector<std::string>& words) {
  return message_of(arguments_from(words));
}

TEST(Arguments, AreRead) {
  const auto arguments =
      arguments_from({"--host", "p.json", "-o", "m.json", "--until=2%", "--repeats", "7",
                      "--watchdog", "90 s", "--for", "90s", "--hang", "2:17", "--verify"});
  ASSERT_TRUE(arguments) << arguments.error().message;
  EXPECT_TRUE(arguments->host);
  EXPECT_TRUE(arguments->verify);
  EXPECT_EQ(arguments->program, "p.json");
  EXPECT_EQ(arguments->output, "m.json");
  EXPECT_DOUBLE_EQ(*arguments->until, 0.02);
  EXPECT_EQ(arguments->repeats, 7);
  EXPECT_EQ(arguments->watchdog, 90_s);
  EXPECT_EQ(arguments->lasting, 90_s);
  EXPECT_EQ(arguments->hang->rank, 2);
  EXPECT_EQ(arguments->hang->instance, 17);
}

TEST(Arguments, HaveDefaultsThatHelpNames) {
  const auto arguments = value_of(arguments_from({"p.json", "--verify"}));
  EXPECT_FALSE(arguments.host);
  EXPECT_EQ(arguments.watchdog, 60_s);
  EXPECT_EQ(arguments.repeats, 10);
  for (const char* text : {"--watchdog SECONDS", "(60)", "(10)", "--as-rank R", "130 interrupted"})
    EXPECT_THAT(help_text(), HasSubstr(text));
}

TEST(Arguments, AreRefusedWithTheReason) {
  EXPECT_THAT(fault({}), HasSubstr("no Program is given"));
  EXPECT_THAT(fault({"p.json"}), HasSubstr("nothing to do"));
  EXPECT_EQ(fault({"p.json", "q.json", "--check"}),
            "two Programs are given: 'p.json' and 'q.json'");
  EXPECT_EQ(fault({"p.json", "--repeat", "3"}),
            "there is no option '--repeat'; did you mean '--repeats'? (see --help)");
  EXPECT_EQ(fault({"p.json", "--repeats"}), "--repeats needs a value: N");
  EXPECT_EQ(fault({"p.json", "--repeats", "many"}),
            "--repeats is 'many', not a whole number from 1 to 1000000");
  EXPECT_EQ(fault({"p.json", "--repeats=0"}),
            "--repeats is '0', not a whole number from 1 to 1000000");
  EXPECT_EQ(fault({"p.json", "--until", "200%"}),
            "--until is '200%', not a share between 0 and 1, such as 2% or 0.02");
  EXPECT_THAT(fault({"p.json", "--watchdog", "soon"}), HasSubstr("not a time, such as 60 or 90 s"));
  EXPECT_THAT(fault({"p.json", "--watchdog", "nan"}), HasSubstr("not a time from 100 ms to 24 h"));
  EXPECT_EQ(fault({"p.json", "--hang", "2"}), "--hang is '2', not RANK:INSTANCE, such as 2:17");
  EXPECT_EQ(fault({"p.json", "--host=yes"}), "--host takes no value");
  EXPECT_EQ(fault({"p.json", "-o", ""}), "-o is empty");
  EXPECT_EQ(fault({"p.json", "-o", "m", "--as-rank", "3"}),
            "--as-rank and --arrivals belong together");
  EXPECT_THAT(fault({"p.json", "--verify", "--as-rank", "3", "--arrivals", "a"}),
              HasSubstr("--verify needs all ranks"));
  EXPECT_EQ(fault({"p.json", "--for", "long"}), "--for is 'long', not a time, such as 60 or 90 s");
  EXPECT_EQ(fault({"p.json", "-o", "m", "--until=2%", "--repeats", "9", "--most-repeats", "3"}),
            "--most-repeats is less than --repeats");
}

}  // namespace foreshard::replay::arguments_test
