// What is wrong with a config.json is said with its key.

#include "tests/strategies/shipped_hf_types.h"
#include "tests/test.h"

namespace foreshard::hf_faults_test {

std::string fault_of(std::string_view text, std::int64_t sequence = 1024) {
  return message_of(read_shipped(text, "mine", sequence), "no fault");
}

TEST(HfFaults, ErrorsNameTheKey) {
  EXPECT_THAT(fault_of("{"), HasSubstr("not JSON"));
  EXPECT_THAT(fault_of("[1]"), HasSubstr("not a JSON object"));
  EXPECT_THAT(fault_of("{}"), AllOf(HasSubstr("'model_type'"), HasSubstr("'llama'")));
  EXPECT_THAT(fault_of(R"({"model_type": "novel"})"),
              AllOf(HasSubstr("'novel'"), HasSubstr(", gpt2, ")));
  EXPECT_THAT(fault_of(R"({"model_type": "llama", "hidden_size": "4096"})"),
              AllOf(HasSubstr("'hidden_size'"), HasSubstr("whole number")));
  EXPECT_THAT(fault_of(R"({"model_type": "llama", "num_hidden_layers": 0})"),
              HasSubstr("'num_hidden_layers'"));
  EXPECT_THAT(fault_of(R"({"model_type": "llama", "vocab_size": -5})"), HasSubstr("'vocab_size'"));
  EXPECT_THAT(fault_of(R"({"model_type": "llama", "vocab_size": 18446744073709551615})"),
              HasSubstr("'vocab_size'"));
  EXPECT_THAT(fault_of(R"({"model_type": "llama", "tie_word_embeddings": 1})"),
              HasSubstr("'tie_word_embeddings'"));
  EXPECT_THAT(fault_of(R"({"model_type": "llama", "hidden_act": "relu"})"),
              HasSubstr("'hidden_act'"));
  EXPECT_THAT(fault_of(R"({"model_type": "gpt2", "attn_pdrop": "no"})"), HasSubstr("'attn_pdrop'"));
  EXPECT_THAT(fault_of(R"({"model_type": "llama", "num_local_experts": 8})"),
              HasSubstr("'num_local_experts'"));
  EXPECT_THAT(fault_of(R"({"model_type": "llama"})", 0), HasSubstr("0 tokens"));
}

TEST(HfFaults, SizesThatContradictEachOther) {
  EXPECT_THAT(fault_of(R"({"model_type": "llama", "num_attention_heads": 12,
                           "num_key_value_heads": 5, "hidden_size": 1200})"),
              HasSubstr("kv_heads 5"));
}

}  // namespace foreshard::hf_faults_test
