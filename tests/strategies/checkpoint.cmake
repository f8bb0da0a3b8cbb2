foreshard_test(checkpoint_test
  SOURCES
    checkpoint/hugging_face_test.cc
    checkpoint/manifest_test.cc
    checkpoint/rules_test.cc
    checkpoint/safetensors_test.cc
    checkpoint/convert_test.cc
    checkpoint/interrupted_test.cc
    checkpoint/synthetic.cc
  DEPS foreshard_checkpoint fmt::fmt rapidcheck::rapidcheck)
