// Files that refer to files: the catalogue, paths, `extends`.

#include "tests/base/temporary_folder.h"
#include "tests/base/yaml/example.h"
#include "tests/test.h"

namespace foreshard {
namespace {

using example::Cluster;
namespace fs = std::filesystem;

class YamlFiles : public testing::Test {
 protected:
  YamlFiles() {
    folder.write("configs/devices/H100-SXM.yaml",
                 "peak: {value: 989 TFLOP/s, source: datasheet, evidence: datasheet}\n"
                 "memory: 80 GiB\npower: 700 W\n");
    folder.write("configs/devices/A100-SXM.yaml", "peak: 312 TFLOP/s\nmemory: 80 GiB\n");
  }

  Result<Cluster> read(const std::string& text) {
    return loader.read_file<Cluster>(folder.write("c.yaml", text));
  }
  std::string fault(const std::string& text) { return message_of(read(text)); }

  TemporaryFolder folder;
  yaml::Loader loader{{.catalogue = {folder.path() / "configs"}}};
};

TEST_F(YamlFiles, NamesComeFromTheCatalogue) {
  const auto cluster = value_of(read("name: x\ndevice: H100-SXM\n"));
  EXPECT_EQ(cluster.device->peak.value, 989_TFLOP_s);
  EXPECT_EQ(cluster.device.name, "H100-SXM");
  ASSERT_EQ(loader.inputs().size(), 2u);
  EXPECT_THAT(loader.inputs()[1].path, EndsWith("configs/devices/H100-SXM.yaml"));
  EXPECT_THAT(loader.inputs()[1].bytes, HasSubstr("700 W"));
}

TEST_F(YamlFiles, UnknownNamesOfferTheNearest) {
  EXPECT_THAT(
      fault("name: x\ndevice: H100-SMX\n"),
      AllOf(HasSubstr("c.yaml:2:9: error: the catalogue has no 'H100-SMX' among its devices"),
            HasSubstr("did you mean 'H100-SXM'?"), HasSubstr("known: 'A100-SXM' or 'H100-SXM'")));
  EXPECT_THAT(fault("name: x\ndevice: ../devices/H100-SXM\n"), HasSubstr("the catalogue has no"));
}

TEST_F(YamlFiles, PathsAreRelativeToTheirFile) {
  folder.write("mine/d.yaml", "extends: base.yaml\nmemory: 1 GiB\n");
  folder.write("mine/base.yaml", "peak: 1 TFLOP/s\nmemory: 2 GiB\n");
  const auto cluster = value_of(read("name: x\ndevice: mine/d.yaml\n"));
  EXPECT_EQ(cluster.device->memory.value, 1_GiB);
  EXPECT_EQ(cluster.device->peak.value, 1_TFLOP_s);
  EXPECT_THAT(fault("name: x\ndevice: mine/bsae.yaml\n"),
              AllOf(HasSubstr("there is no file"), HasSubstr("did you mean 'base.yaml'?")));
}

TEST_F(YamlFiles, ExtendsMergesKeyByKey) {
  folder.write("configs/clusters/hall.yaml",
               "name: hall\nnodes: 8\ndevice: H100-SXM\nweights: {a: 1, b: 1}\ntags: [p, q]\n");
  const auto cluster = value_of(read("extends: hall\nnodes: 9\nweights: {b: 0.5}\ntags: [r]\n"));
  EXPECT_EQ(cluster.name, "hall");
  EXPECT_EQ(cluster.nodes, 9);
  EXPECT_EQ(cluster.weights, (std::map<std::string, double>{{"a", 1}, {"b", 0.5}}));
  EXPECT_EQ(cluster.tags, std::vector<std::string>{"r"});  // lists are replaced
  EXPECT_EQ(cluster.device->power, 700_W);
}

TEST_F(YamlFiles, ObjectsOfTheCatalogueExtendInPlace) {
  const auto cluster = value_of(read("name: x\ndevice: {extends: H100-SXM, memory: 141 GB}\n"));
  EXPECT_EQ(cluster.device->memory.value, 141_GB);
  EXPECT_EQ(cluster.device->peak.value, 989_TFLOP_s);
  EXPECT_THAT(fault("name: x\nnics: [{extends: y.yaml}]\n"),
              HasSubstr("`extends` stands at the top of a file"));
  EXPECT_THAT(fault("extends: [a]\nname: x\n"), HasSubstr("'extends' must be"));
}

TEST_F(YamlFiles, CirclesAreNamed) {
  folder.write("a.yaml", "extends: b.yaml\n");
  folder.write("b.yaml", "extends: a.yaml\n");
  EXPECT_THAT(fault("extends: a.yaml\n"),
              HasSubstr("files refer to each other in a circle: a.yaml -> b.yaml -> a.yaml"));
  EXPECT_THAT(fault("extends: c.yaml\n"), HasSubstr("in a circle: c.yaml -> c.yaml"));
}

TEST_F(YamlFiles, FaultsInAReferredFileNameTheWayThere) {
  folder.write("d.yaml", "peak: 1\nmemory: 1 GiB\n");
  EXPECT_THAT(fault("name: x\ndevice: d.yaml\n"),
              AllOf(HasSubstr("d.yaml:1:7: error: 'peak': '1' has no unit"),
                    HasSubstr("referred to at"), HasSubstr("c.yaml:2:9")));
  folder.write("e.yaml", "- 1\n");
  EXPECT_THAT(fault("extends: e.yaml\n"), HasSubstr("must hold a mapping"));
}

TEST_F(YamlFiles, UnreadableFilesAreIoErrors) {
  for (const fs::path& path : {folder.path() / "absent.yaml", folder.path()}) {
    EXPECT_THAT(error_of(loader.read_file<Cluster>(path)),
                Fails(Error::Code::kIo, HasSubstr(path.string())));
  }
}

TEST_F(YamlFiles, AByteOrderMarkAndCrlfAreFine) {
  const auto cluster = value_of(read("\xEF\xBB\xBFname: x\r\nnodes: 3\r\n"));
  EXPECT_EQ(cluster.name, "x");
  EXPECT_EQ(cluster.nodes, 3);
}

TEST_F(YamlFiles, PlacesServeLaterChecks) {
  ASSERT_TRUE(read("name: x\nnics:\n  - {bandwidth: 1 GB/s,\n     count: 2}\n"));
  EXPECT_THAT(loader.place("nics[0].count"), EndsWith("c.yaml:4:13"));
  EXPECT_THAT(loader.place("nics.0.latency"), EndsWith("c.yaml:3:5"));  // unwritten: its mapping
  const Error error = loader.error_at("nics.0.count", "too many", "use 1");
  EXPECT_EQ(error.code, Error::Code::kInvalidInput);
  EXPECT_THAT(error.message, HasSubstr("c.yaml:4:13: error: too many\n"
                                       "   4 |      count: 2}\n"
                                       "     |             ^\n"
                                       "     help: use 1"));
}

TEST_F(YamlFiles, ReferencesCanComeFromOutside) {
  const auto device = value_of(loader.read_ref<example::Device>("A100-SXM", "device"));
  EXPECT_EQ(device.peak.value, 312_TFLOP_s);
  EXPECT_THAT(loader.place("device.memory"), EndsWith("A100-SXM.yaml:2:9"));
  EXPECT_THAT(loader.read_ref<example::Device>("A100").error().message,
              HasSubstr("the catalogue has no 'A100'"));
}

}  // namespace
}  // namespace foreshard
