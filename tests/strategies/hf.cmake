foreshard_test(hf_config_test
  SOURCES hf_config_test.cc hf_encoders_test.cc hf_mamba_test.cc
  DEPS foreshard_graph fmt::fmt)
