if(FORESHARD_ONNX_FOUND)
  foreshard_test(onnx_test
    SOURCES onnx/import_test.cc onnx/models.cc onnx/read_test.cc
    DEPS foreshard_onnx ONNX::onnx)
endif()
